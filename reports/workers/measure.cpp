// SPDX-License-Identifier: Apache-2.0
#include "reports/workers/measure.h"

#include <algorithm>

#include "reports/workers/advise.h"
#include "reports/workers/compare.h"
#include "reports/workers/search.h"

namespace howmany::reports {
namespace {

constexpr int kMaxRuns = 8;
constexpr int kDecidingTurns = 5;  // with fewer, more turns may change the answer

// Returns those of `numbers` that lack turns for a certain answer, and sets the turns to add.
std::vector<int> lacking(const WorkersFacts& facts, const std::vector<int>& numbers,
                         size_t& turns) {
  std::vector<int> few;
  int rounds = 0;
  for (const auto& [workers, missing] : turns_missing(facts)) {
    if (std::ranges::count(numbers, workers) == 0) continue;
    few.push_back(workers);
    rounds = std::max(rounds, missing);
  }
  turns = few.size() * static_cast<size_t>(rounds);
  return few;
}

// True if more turns would not change the answer.
bool is_decided(const WorkersFacts& facts, const std::vector<int>& numbers) {
  if (has_new(facts, numbers)) return false;
  const bool enough = std::ranges::all_of(numbers, [&](int workers) {
    return find_point(facts.points, workers)->turns() >= kDecidingTurns;
  });
  return enough && (!facts.wanted.empty() || advise_workers(facts).certain);
}

}  // namespace

bool measure_workers(WorkersBench& bench, WorkersFacts& facts, const Budget& budget) {
  for (int run = 0; run < kMaxRuns; ++run) {
    std::vector<int> numbers = next_numbers(facts);
    if (numbers.empty() || (run > 0 && is_decided(facts, numbers))) break;
    const double round = bench.seconds_of(numbers.size());
    double seconds = std::max(0.0, budget.left() - bench.first_epoch_seconds());
    const bool explores = facts.wanted.empty() && has_new(facts, numbers);
    if (explores && seconds / 2 >= kMinTurns * round) seconds /= 2;
    if (run > 0 && seconds < round) {
      facts.undecided = has_new(facts, numbers);
      size_t turns = 0;
      const std::vector<int> few = lacking(facts, numbers, turns);
      if (few.empty() || bench.seconds_of(turns) > seconds) {
        facts.enough_seconds = budget.elapsed() + bench.seconds_of(kMinTurns * numbers.size());
        break;
      }
      numbers = few;
    }
    if (!bench.measure(facts, numbers, seconds)) return false;
  }
  return true;
}

}  // namespace howmany::reports
