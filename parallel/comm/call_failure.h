// SPDX-License-Identifier: Apache-2.0
// How a call of a communication engine failed.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "parallel/comm/comm_error.h"

namespace howmany {

// Thrown by engines. Comm adds the operation, the rank and the elapsed time.
class EngineError : public Error {
 public:
  EngineError(int peer, const std::string& why) : Error(why), peers_(peer < 0 ? 0 : 1, peer) {}
  EngineError(std::vector<int> peers, const std::string& why)
      : Error(why), peers_(std::move(peers)) {}
  int peer() const { return peers_.empty() ? -1 : peers_.front(); }  // -1 if unknown
  const std::vector<int>& peers() const { return peers_; }           // ranks that caused it

 private:
  std::vector<int> peers_;
};

// World ranks and hosts of a group's ranks, for messages.
struct Roster {
  int world = 1;
  std::vector<int> ranks;
  std::vector<std::string> hosts = {};  // empty if unknown

  std::string host_of(int rank) const {
    return hosts.empty() ? "" : hosts[static_cast<size_t>(rank)];
  }
  Roster of(const std::vector<int>& members) const;
};

class CommEngine;

// The contents of a CommError. Crosses threads instead of the exception. Ranks are world ranks.
struct CallFailure {
  CallFailure(const CommEngine& engine, std::string_view what, std::vector<int> peers,
              double elapsed_seconds, std::string_view reason);
  CommError error() const { return {operation, rank, size, backend, peer, host, elapsed, why}; }
  [[noreturn]] void raise() const { throw error(); }

  std::string operation, backend;
  int rank = 0, size = 1, peer = -1;
  std::string host;  // of the peer
  double elapsed = 0;
  std::string why;
};

}  // namespace howmany
