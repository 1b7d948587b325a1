#include "parallel/engine.h"

#include <numeric>

namespace howmany {

Roster Roster::of(const std::vector<int>& members) const {
  Roster some{.world = world, .ranks = {}};
  for (const int r : members) {
    some.ranks.push_back(ranks[static_cast<size_t>(r)]);
    if (!hosts.empty()) some.hosts.push_back(host_of(r));
  }
  return some;
}

CommEngine::CommEngine(int rank, int size) : rank_(rank), size_(size) {
  roster_ = {.world = size, .ranks = std::vector<int>(static_cast<size_t>(size))};
  std::iota(roster_.ranks.begin(), roster_.ranks.end(), 0);
}

}  // namespace howmany
