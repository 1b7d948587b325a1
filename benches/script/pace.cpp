// SPDX-License-Identifier: Apache-2.0
#include "benches/script/pace.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/statistics.h"

namespace howmany::benches {
namespace {

constexpr double kLong = 1.25;          // times the lower quartile of steps, as in cycles.py
constexpr double kSameLength = 0.2;     // of cycles, relative difference
constexpr double kMostAlike = 2.0 / 3;  // of the cycles
constexpr double kVaries = 1.1;         // upper quartile of samples, relative to the lower one
constexpr size_t kMinPart = 3;          // steps

double sum(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

std::span<const double> part(const std::vector<double>& values, const Cycle& cycle) {
  return std::span(values).subspan(cycle.first, cycle.last - cycle.first + 1);
}

bool vary(const std::vector<double>& samples) {
  return quantile(samples, 0.75) > kVaries * quantile(samples, 0.25);
}

// Returns the steps of the cycles; all steps if there are none.
std::vector<Cycle> each_step(const TimedSteps& steps) {
  std::vector<Cycle> all;
  const auto add = [&](size_t first, size_t last) {
    for (size_t i = first; i <= last; ++i) all.push_back({i, i});
  };
  for (const Cycle& cycle : steps.cycles) add(cycle.first, cycle.last);
  if (all.empty()) add(0, steps.seconds.size() - 1);
  return all;
}

// True if most cycles have about the same number of steps.
bool regular(const TimedSteps& steps) {
  if (steps.cycles.empty()) return false;
  std::vector<double> lengths;
  for (const Cycle& cycle : steps.cycles)
    lengths.push_back(static_cast<double>(cycle.last - cycle.first + 1));
  const double usual = quantile(lengths, 0.5);
  const auto alike = std::ranges::count_if(
      lengths, [&](double one) { return std::abs(one - usual) <= kSameLength * usual; });
  return static_cast<double>(alike) >= kMostAlike * static_cast<double>(lengths.size());
}

}  // namespace

std::vector<double> step_times(const TimedSteps& steps, double batch) {
  if (steps.cycles.empty() && !vary(steps.samples)) return steps.seconds;
  std::vector<double> times;
  double seconds = 0, samples = 0;
  for (const Cycle& one : regular(steps) ? steps.cycles : each_step(steps)) {
    const double time = sum(part(steps.seconds, one)), count = sum(part(steps.samples, one));
    if (count > 0) times.push_back(time * batch / count);
    seconds += time;
    samples += count;
  }
  if (times.empty()) return steps.seconds;
  const double centre = seconds * batch / samples / quantile(times, 0.5);
  for (double& time : times) time *= centre;
  return times;
}

std::optional<double> between_steps_fraction(const TimedSteps& steps) {
  if (!regular(steps)) return std::nullopt;
  const double usual = quantile(steps.busy, 0.25);
  double seconds = 0, extra = 0;
  for (const Cycle& cycle : steps.cycles) {
    seconds += sum(part(steps.seconds, cycle));
    for (const double busy : part(steps.busy, cycle))
      if (busy > kLong * usual) extra += busy - usual;
  }
  return extra / seconds;
}

bool still_changed(std::span<const double> samples) {
  const size_t size = samples.size() / 4;
  if (size < kMinPart) return false;
  const auto same = [](std::span<const double> all) {
    return std::ranges::all_of(all, [&](double one) { return one == all.front(); });
  };
  const auto first = samples.first(size), last = samples.last(size);
  return same(first) && same(last) && first.front() != last.front();
}

}  // namespace howmany::benches
