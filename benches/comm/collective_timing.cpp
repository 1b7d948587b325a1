// SPDX-License-Identifier: Apache-2.0
#include "benches/comm/collective_timing.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/clock.h"
#include "core/base/statistics.h"
#include "core/gpu/event.h"
#include "core/gpu/gpu.h"
#include "core/ops/ops.h"

namespace howmany::benches {
namespace {

constexpr int kBlock = 3;           // iterations between two checks for the end of the warm-up
constexpr double kWarmUp = 0.05;    // minimum share of a case's time, if calls are that short
constexpr double kMaxWarmUp = 0.2;  // upper limit of that share, if the times never get steady
constexpr double kSettle = 0.03;    // seconds of calls until threads are spread over the cores
constexpr double kSteady = 0.95;  // steady if a block takes more than this share of the one before
constexpr double kChainSeconds = 2e-3;

double agreed(Comm& comm, double mine) {
  Tensor most = Tensor::full({1}, mine, Dtype::f64);
  comm.all_reduce(most, ReduceOp::max);
  return most.item();
}

struct Warm {
  double seconds = 0;       // of one call, as measured
  double wall_seconds = 0;  // of one iteration, barrier and agreement included
};

// The first check follows one call. If a call is long, there is no time for more.
Warm warm_up(Comm& comm, const std::function<void()>& body, double seconds) {
  const auto start = Clock::now();
  double last = std::numeric_limits<double>::infinity();
  for (int calls = 0, block = 1;; block = kBlock) {
    const TimingOptions options{
        .min_iterations = block, .max_iterations = block, .warmup_iterations = 0};
    const double now = quantile(time_iterations(comm, options, body).seconds, 0.5);
    const double wall = agreed(comm, seconds_since(start));
    calls += block;
    const bool steady = now > kSteady * last && wall > kWarmUp * seconds;
    if (steady || wall > kMaxWarmUp * seconds) return {now, wall / calls};
    last = now;
  }
}

double one_call(Comm& comm, const std::function<void()>& body) {
  const TimingOptions once{.min_iterations = 1, .max_iterations = 1, .warmup_iterations = 0};
  return time_iterations(comm, once, body).seconds.front();
}

int count_within(double seconds, double each, int least, int most) {
  return static_cast<int>(std::clamp(seconds / std::max(each, 1e-9), 1.0 * least, 1.0 * most));
}

Samples time_isolated(Comm& comm, Collective& op, const Warm& warm, double seconds, int least) {
  const TimingOptions options{
      .budget_seconds = std::numeric_limits<double>::infinity(),
      .min_iterations = least,
      .max_iterations = count_within(seconds, warm.wall_seconds + kHostGap, least, 5000),
      .warmup_iterations = 0,
      .gap_seconds = kHostGap};
  return time_iterations(comm, options, [&] { op.run(); });
}

void time_chains(Comm& comm, Collective& op, const Warm& warm, double seconds,
                 CollectiveTimes& times) {
  times.chain = count_within(kChainSeconds, warm.seconds, 2, 1000);
  const double each = warm.seconds * times.chain + warm.wall_seconds - warm.seconds;
  if (3 * each > 2 * seconds) return;
  const int chains = count_within(seconds, each, 3, 500);
  const TimingOptions options{.budget_seconds = std::numeric_limits<double>::infinity(),
                              .min_iterations = chains,
                              .max_iterations = chains,
                              .warmup_iterations = 0};
  times.pipelined = time_iterations(comm, options, [&] {
    for (int i = 0; i < times.chain; ++i) op.run();
  });
  for (double& s : times.pipelined.seconds) s /= times.chain;
}

// A message takes half a round trip.
void halve(Samples& samples) {
  for (double& s : samples.seconds) s /= 2;
}

// Products of matrices that are short compared with an all_reduce and long compared with a call.
class Products {
 public:
  Products(Device where, int64_t bytes)
      : where_(where),
        a_(Tensor::full({side(bytes), side(bytes)}, 0.5).to(where)),
        b_(Tensor::full({side(bytes), side(bytes)}, 0.25).to(where)) {}

  // Returns when the products are done. Calls `poll` meanwhile.
  void multiply(
      int times, const std::function<void()>& poll = [] {}) const {
    for (int i = 0; i < times; ++i) {
      ops::matmul(a_, b_);
      poll();
    }
    if (where_.type != DeviceType::cuda) return;
    for (const gpu::TimedEvent end(where_.index); !end.occurred();) poll();
  }

 private:
  int64_t side(int64_t bytes) const {
    if (where_.type == DeviceType::cpu) return 192;
    return std::clamp<int64_t>(static_cast<int64_t>(std::sqrt(bytes)) / 8 * 8, 32, 1024);
  }

  const Device where_;
  const Tensor a_, b_;
};

}  // namespace

RankPaces compare_paces(Comm& comm, double seconds) {
  Tensor all = Tensor::zeros({comm.size()}, Dtype::f64);
  all.mutable_data<double>()[comm.rank()] = seconds;
  comm.all_reduce(all);
  std::vector<double> others(all.values<double>().begin(), all.values<double>().end());
  const auto slowest = std::ranges::max_element(others);
  RankPaces paces{.slowest = static_cast<int>(slowest - others.begin()), .seconds = *slowest};
  others.erase(slowest);
  paces.of_others = paces.seconds / median(others);
  return paces;
}

RankPaces time_paces(Comm& comm, Device where) {
  constexpr double kSeconds = 0.1;
  const bool on_gpu = where.type == DeviceType::cuda;
  const Products products(Device{}, 0);
  const Tensor large = Tensor::zeros({on_gpu ? int64_t{4} << 20 : 1}, Dtype::f32, where);
  const auto once = [&] {
    const auto start = Clock::now();
    if (!on_gpu) return products.multiply(1), seconds_since(start);
    ops::add(large, large);
    gpu::TimedEvent(where.index).wait();
    return seconds_since(start);
  };
  comm.barrier();
  for (const auto start = Clock::now(); seconds_since(start) < kSeconds / 2;) once();
  std::vector<double> seconds;
  for (const auto start = Clock::now(); seconds_since(start) < kSeconds;) seconds.push_back(once());
  return compare_paces(comm, median(seconds));
}

void settle(Comm& comm) {
  Tensor token = Tensor::zeros({1});
  const TimingOptions until{.budget_seconds = kSettle,
                            .target_half_width = 0,
                            .max_iterations = std::numeric_limits<int>::max(),
                            .warmup_iterations = 0};
  time_iterations(comm, until, [&] { comm.all_reduce(token); });
}

CollectiveTimes time_collective(Comm& comm, Collective& op, double seconds, int least) {
  const auto run = [&] { op.run(); };
  const auto start = Clock::now();
  op.fill(0);
  const double first = one_call(comm, run);
  op.check(0);
  op.fill_for_timing(1);
  CollectiveTimes times;
  times.cost.fixed = 2 * agreed(comm, seconds_since(start));  // the check afterwards takes as long
  seconds = std::max(0.0, seconds - times.cost.fixed);
  const bool brief = least == 1 && first > seconds / 2;
  const Warm warm = brief ? Warm{first, first} : warm_up(comm, run, seconds);
  times.isolated = time_isolated(comm, op, warm, seconds / 2, least);
  times.cost.call = median(times.isolated.seconds);
  time_chains(comm, op, warm, seconds / 4, times);
  op.check(1);
  op.fill(2);  // a pattern that no earlier call left there
  op.run();
  op.check(2);
  if (!op.round_trip()) return times;
  halve(times.isolated);
  halve(times.pipelined);
  return times;
}

OverlapTimes time_overlap(Comm& comm, int64_t bytes, Device where, double seconds) {
  const Products products(where, bytes);
  Tensor buffer = Tensor::zeros({std::max<int64_t>(1, bytes / 4)}, Dtype::f32, where);
  const TimingOptions few{.min_iterations = 7, .max_iterations = 7};
  OverlapTimes times;
  const auto reduce = [&] { comm.all_reduce_async(buffer).finish(); };
  times.comm_alone = median(time_iterations(comm, few, reduce).seconds);
  const double one = median(time_iterations(comm, few, [&] { products.multiply(1); }).seconds);
  times.gemms = count_within(times.comm_alone, one, 1, 100'000);
  std::vector<double> comm_alone, gemm_alone, comm_beside, gemm_beside, hidden;
  const auto both = [&] {
    const auto start = Clock::now();
    Work work = comm.all_reduce_async(buffer);
    double done = 0;
    products.multiply(times.gemms, [&] {
      if (done == 0 && work.ready()) done = seconds_since(start);
    });
    gemm_beside.push_back(seconds_since(start));
    work.finish();
    comm_beside.push_back(done > 0 ? done : seconds_since(start));
  };
  const int rounds = count_within(seconds, 4 * times.comm_alone, 7, 200);
  for (int round = 0; round < rounds; ++round) {  // interleaved, because the machine's speed varies
    comm_alone.push_back(one_call(comm, reduce));
    gemm_alone.push_back(one_call(comm, [&] { products.multiply(times.gemms); }));
    const double together = one_call(comm, both);
    const double apart = comm_alone.back() + gemm_alone.back();
    hidden.push_back((apart - together) / std::min(comm_alone.back(), gemm_alone.back()));
  }
  times.comm_alone = median(comm_alone);
  times.gemm_alone = median(gemm_alone);
  times.comm_beside = agreed(comm, median(comm_beside));
  times.gemm_beside = agreed(comm, median(gemm_beside));
  times.hidden = median(hidden);
  return times;
}

}  // namespace howmany::benches
