// Where the ranks of a gloo group find each other, and where they leave word when they fail: a
// small key-value store, in files or behind a TCP port that rank 0 serves. Thread-safe.
#pragma once

#include <gloo/rendezvous/store.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace howmany {

class Rendezvous : public ::gloo::rendezvous::Store {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  // Until when get() and wait() wait, and everything that needs a connection; gloo's own timeouts
  // are whole seconds, and get()'s is fixed.
  void set_deadline(Deadline deadline) { deadline_ = deadline; }

  virtual bool has(const std::string& key) = 0;
  // The address of this machine that the others can reach.
  virtual std::string address() const = 0;

  std::vector<char> get(const std::string& key) override;
  void wait(const std::vector<std::string>& keys) override;
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds&) override {
    wait(keys);
  }

 protected:
  Deadline latest() const { return deadline_; }
  virtual std::vector<char> fetch(const std::string& key) = 0;

 private:
  std::atomic<Deadline> deadline_{Deadline::max()};
};

// "file:<folder>" or "tcp:<host>:<port>". Throws std::invalid_argument for anything else, Error
// when the folder or the port cannot be used.
std::unique_ptr<Rendezvous> make_rendezvous(const std::string& text, int rank,
                                            Rendezvous::Deadline deadline);
std::unique_ptr<Rendezvous> make_tcp_rendezvous(const std::string& host, const std::string& port,
                                                int rank, Rendezvous::Deadline deadline);

}  // namespace howmany
