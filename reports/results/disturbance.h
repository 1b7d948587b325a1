// SPDX-License-Identifier: Apache-2.0
// Load from other programs during a measurement: how large it is, which rounds are measured again
// because of it, and how an answer reports it. A busy core slows several devices more than one,
// which looks like bad scaling. One thread.
//
//   const LoadMeter meter;
//   run_command(command);
//   const double busy = meter.busy_elsewhere();
#pragma once

#include <chrono>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "reports/results/core_use.h"

namespace howmany::reports {

class LoadMeter {
 public:
  // The share of the cores, 0 to 1, that other programs have used since construction. NaN within
  // the first second, which has too few clock ticks, and if the system does not report it.
  double busy_elsewhere() const;

 private:
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  const CoreUse before_ = read_core_use();
};

bool is_disturbed(double busy_elsewhere);  // more than a tenth of the cores; false for NaN

// Chooses the rounds to measure again: the most disturbed first, each once.
class RepeatedRounds {
 public:
  // `busy_elsewhere`: the largest share during a run of each round. Returns nullopt if no round is
  // left to repeat.
  std::optional<int> next(std::span<const double> busy_elsewhere);

 private:
  std::set<int> repeated_;
};

// Measures once, and once more if the result is disturbed and `has_time(result)`. Returns the less
// disturbed of the two. A result has the member busy_elsewhere.
template <typename Measure, typename HasTime>
auto measure_undisturbed(const Measure& measure, const HasTime& has_time) {
  auto result = measure();
  if (!is_disturbed(result.busy_elsewhere) || !has_time(result)) return result;
  auto again = measure();
  return again.busy_elsewhere < result.busy_elsewhere ? std::move(again) : std::move(result);
}

std::string busy_note(double busy_elsewhere);  // a sentence
std::string uncertain_because(double busy_elsewhere, const std::string& because);

// Makes an answer uncertain if the measurements that it rests on are disturbed. An answer has the
// members disturbed, certain, because and notes.
template <typename Advice>
void mark_disturbed(double busy_elsewhere, Advice& advice) {
  advice.disturbed = is_disturbed(busy_elsewhere);
  if (!advice.disturbed) return;
  advice.certain = false;
  advice.because = uncertain_because(busy_elsewhere, advice.because);
  advice.notes.insert(advice.notes.begin(), busy_note(busy_elsewhere));
}

}  // namespace howmany::reports
