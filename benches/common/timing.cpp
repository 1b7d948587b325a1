// SPDX-License-Identifier: Apache-2.0
#include "benches/common/timing.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/gpu/event.h"
#include "core/gpu/gpu.h"

namespace howmany::benches {
namespace {

constexpr int kWarmUpRounds = 4;

double time_once(Comm& comm, const std::function<void()>& body, double gap_seconds) {
  comm.barrier();
  if (gap_seconds > 0) busy_wait(gap_seconds);
  const Clock::time_point start = Clock::now();
  body();
  Tensor slowest = Tensor::full({1}, seconds_since(start), Dtype::f64);
  comm.all_reduce(slowest, ReduceOp::max);
  return slowest.item();
}

void take_maxima(Comm& comm, std::vector<double>& seconds) {
  Tensor most = Tensor::from<double>(seconds, {static_cast<int64_t>(seconds.size())});
  comm.all_reduce(most, ReduceOp::max);
  std::ranges::copy_n(most.data<double>(), most.numel(), seconds.begin());
}

// Times that many steps. One more step before them fills the GPU's queue and is not counted.
std::vector<double> device_seconds(int gpu, size_t steps, const std::function<void()>& step) {
  std::vector<gpu::TimedEvent> ends;
  for (size_t i = 0; i <= steps; ++i) {
    step();
    ends.emplace_back(gpu);
    if (i > 0) ends[i - 1].wait();
  }
  std::vector<double> seconds;
  for (size_t i = 1; i < ends.size(); ++i) seconds.push_back(ends[i].seconds_since(ends[i - 1]));
  return seconds;
}

bool tight(const std::vector<double>& seconds, double target_half_width) {
  const Interval interval = median_bounds(seconds);
  return (interval.high - interval.low) / 2 <= target_half_width * quantile(seconds, 0.5);
}

// The interval is computed rarely, because it sorts.
size_t next_after(size_t look) { return look + std::max<size_t>(1, look / 8); }

void check(const TimingOptions& options) {
  HM_REQUIRE(options.min_iterations >= 1 && options.max_iterations >= options.min_iterations,
             "[time] iterations between {} and {}", options.min_iterations, options.max_iterations);
}

// spent() returns the used part of the budget in seconds.
Samples collect(const TimingOptions& options, const std::function<double()>& one,
                const std::function<double(const Samples&)>& spent) {
  check(options);
  for (int i = 0; i < options.warmup_iterations; ++i) one();
  Samples samples;
  size_t next_look = 6;
  for (int i = 0; i < options.max_iterations; ++i) {
    samples.seconds.push_back(one());
    if (i + 1 < options.min_iterations) continue;
    if (samples.seconds.size() >= next_look) {
      samples.converged = tight(samples.seconds, options.target_half_width);
      next_look = next_after(samples.seconds.size());
    }
    if (samples.converged || spent(samples) >= options.budget_seconds) break;
  }
  return samples;
}

}  // namespace

std::optional<TimingOptions> fitting(const TimingOptions& options, double one_seconds) {
  TimingOptions rest = options;
  rest.budget_seconds = options.budget_seconds - one_seconds;
  rest.warmup_iterations = std::max(0, options.warmup_iterations - 1);
  const double fit = rest.budget_seconds / one_seconds;
  if (fit >= rest.warmup_iterations + rest.min_iterations) return rest;
  if (fit < 1) return std::nullopt;
  rest.warmup_iterations = 0;
  rest.min_iterations = rest.max_iterations =
      std::min(static_cast<int>(fit), options.min_iterations);
  return rest;
}

// Every rank must see the same elapsed time.
Samples time_iterations(Comm& comm, const TimingOptions& options,
                        const std::function<void()>& body) {
  double sum = 0;
  size_t summed = 0;
  return collect(
      options, [&] { return time_once(comm, body, options.gap_seconds); },
      [&](const Samples& samples) {
        while (summed < samples.seconds.size()) sum += samples.seconds[summed++];
        return sum;
      });
}

Samples sample(const TimingOptions& options, const std::function<double()>& one) {
  const Clock::time_point start = Clock::now();
  return collect(options, one, [&](const Samples&) { return seconds_since(start); });
}

Samples time_on_gpu(Comm& comm, const TimingOptions& options, int gpu,
                    const std::function<void()>& step) {
  check(options);
  for (int i = 0; i < options.warmup_iterations; ++i) step();
  Samples samples;
  std::vector<double>& all = samples.seconds;
  // Between two checks of the interval, only the steps themselves synchronize the ranks.
  size_t next_look = static_cast<size_t>(options.min_iterations);
  const auto most = static_cast<size_t>(options.max_iterations);
  while (all.size() < most && !samples.converged) {
    std::vector<double> some = device_seconds(gpu, next_look - all.size(), step);
    take_maxima(comm, some);
    all.insert(all.end(), some.begin(), some.end());
    samples.converged = all.size() >= 6 && tight(all, options.target_half_width);
    if (std::accumulate(all.begin(), all.end(), 0.0) >= options.budget_seconds) break;
    next_look = std::min(most, next_after(all.size()));
  }
  return samples;
}

Turns in_turn(int rounds, const std::function<double()>& ours,
              const std::function<double()>& theirs) {
  Turns all;
  for (int round = -kWarmUpRounds; round < rounds; ++round) {
    const bool first = round % 2 == 0;
    const double before = first ? ours() : 0;
    const double other = theirs();
    const double own = first ? before : ours();
    if (round < 0) continue;
    all.ours.push_back(own);
    all.theirs.push_back(other);
  }
  return all;
}

void busy_wait(double seconds) {
  const Clock::time_point start = Clock::now();
  while (seconds_since(start) < seconds) {
  }
}

Interval median_bounds(std::span<const double> samples) {
  const auto interval = samples.empty() ? std::nullopt : median_interval(samples);
  return interval.value_or(Interval{0, std::numeric_limits<double>::infinity()});
}

}  // namespace howmany::benches
