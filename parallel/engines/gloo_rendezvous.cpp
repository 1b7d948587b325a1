// SPDX-License-Identifier: Apache-2.0
#include "parallel/engines/gloo_rendezvous.h"

#include <gloo/rendezvous/file_store.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <thread>

#include "core/base/error.h"
#include "parallel/comm/comm_list.h"

namespace howmany {
namespace {

// Short, because tests and short runs connect many groups. Used only while ranks connect.
constexpr std::chrono::milliseconds kPollInterval(5);

class Files : public Rendezvous {
 public:
  explicit Files(const std::string& folder) : store_(made(folder)) {}

  void set(const std::string& key, const std::vector<char>& data) override {
    std::lock_guard lock(mutex_);
    store_.set(key, data);
  }
  bool has(const std::string& key) override {
    std::lock_guard lock(mutex_);
    return store_.check({key});
  }
  std::string address() const override { return "127.0.0.1"; }

 protected:
  std::vector<char> fetch(const std::string& key) override {
    std::lock_guard lock(mutex_);
    return store_.get(key);
  }

 private:
  struct Store : ::gloo::rendezvous::FileStore {
    using FileStore::check;
    using FileStore::FileStore;
  };

  static std::string made(const std::string& folder) {
    HM_ENSURE(mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST, "rendezvous folder {}: {}",
              folder, std::strerror(errno));
    return folder;
  }

  std::mutex mutex_;
  Store store_;
};

}  // namespace

std::vector<char> Rendezvous::get(const std::string& key) {
  wait({key});
  return fetch(key);
}

void Rendezvous::wait(const std::vector<std::string>& keys) {
  for (const std::string& key : keys) {
    while (!has(key)) {
      HM_ENSURE(std::chrono::steady_clock::now() < deadline_.load(), "nothing came under {}", key);
      std::this_thread::sleep_for(kPollInterval);
    }
  }
}

std::string comms::gloo_unavailable(const Place& place) {
  if (place.world == 1 || !place.rendezvous.empty()) return "";
  return place.launcher + " does not give its ranks an address: set MASTER_ADDR and MASTER_PORT";
}

std::unique_ptr<Rendezvous> make_rendezvous(const std::string& text, int rank,
                                            Rendezvous::Deadline deadline) {
  std::unique_ptr<Rendezvous> rendezvous;
  const size_t colon = text.rfind(':');
  if (text.starts_with("file:") && text.size() > 5) {
    rendezvous = std::make_unique<Files>(text.substr(5));
  } else if (text.starts_with("tcp:") && colon > 4) {
    std::string host = text.substr(4, colon - 4);
    if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
    rendezvous = make_tcp_rendezvous(host, text.substr(colon + 1), rank, deadline);
  }
  HM_REQUIRE(rendezvous, "[connect] rendezvous '{}': expected file:<folder> or tcp:<host>:<port>",
             text);
  rendezvous->set_deadline(deadline);
  return rendezvous;
}

}  // namespace howmany
