// SPDX-License-Identifier: Apache-2.0
// The rendezvous of a gloo group: a small key-value store in files, or on a TCP port that rank 0
// serves. Ranks exchange addresses and failures through it. Thread-safe.
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

  // Limits get(), wait() and all connections. Gloo's own timeouts are whole seconds, and that of
  // get() is fixed.
  void set_deadline(Deadline deadline) { deadline_ = deadline; }

  virtual bool has(const std::string& key) = 0;
  // Returns the address at which other ranks can reach this machine.
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

// `text` is "file:<folder>" or "tcp:<host>:<port>". Throws std::invalid_argument if it is neither,
// Error if the folder or the port cannot be used.
std::unique_ptr<Rendezvous> make_rendezvous(const std::string& text, int rank,
                                            Rendezvous::Deadline deadline);
std::unique_ptr<Rendezvous> make_tcp_rendezvous(const std::string& host, const std::string& port,
                                                int rank, Rendezvous::Deadline deadline);

}  // namespace howmany
