// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/call_failure.h"

#include "parallel/comm/engine.h"

namespace howmany {

Roster Roster::of(const std::vector<int>& members) const {
  Roster some{.world = world, .ranks = {}};
  for (const int r : members) {
    some.ranks.push_back(ranks[static_cast<size_t>(r)]);
    if (!hosts.empty()) some.hosts.push_back(host_of(r));
  }
  return some;
}

CallFailure::CallFailure(const CommEngine& engine, std::string_view what, std::vector<int> peers,
                         double elapsed_seconds, std::string_view reason)
    : operation(what),
      backend(engine.name()),
      rank(engine.roster().ranks[static_cast<size_t>(engine.rank())]),
      size(engine.roster().world),
      elapsed(elapsed_seconds),
      why(reason) {
  if (peers.empty()) return;
  host = engine.roster().host_of(peers[0]);
  for (int& p : peers) p = engine.roster().ranks[static_cast<size_t>(p)];
  peer = peers[0];
  peers.erase(peers.begin());
  if (!peers.empty()) why = fmt::format("and others ({}) {}", fmt::join(peers, ", "), why);
}

}  // namespace howmany
