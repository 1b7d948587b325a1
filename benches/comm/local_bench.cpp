// SPDX-License-Identifier: Apache-2.0
// Compares the `local` all_reduce with a plain copy loop on the same threads that reads and writes
// as many bytes. In an all_reduce each rank reads its chunk of every buffer and writes it back to
// all of them. So the whole size is read once and written once. Both alternate, so that noise
// affects both. The counter `of_copy` is the ratio of their medians (1: as fast as copying).
#include <map>
#include <vector>

#include "benches/common/context.h"
#include "benches/common/report.h"
#include "benches/common/timing.h"
#include "core/base/error.h"
#include "core/base/schema/metrics.h"
#include "core/host/copy.h"
#include "core/tensor/device.h"
#include "parallel/launch/launch.h"

namespace howmany::benches {
namespace {

constexpr int kDevices = 2;
constexpr int kRounds = 31;

struct Pair {
  Samples copy, all_reduce;
};

void check(Comm& comm, Tensor& t) {
  for (float& v : t.mutable_values<float>()) v = static_cast<float>(comm.rank() + 1);
  comm.all_reduce(t);
  for (const float v : t.values<float>())
    HM_ENSURE(v == 3, "[local_bench] the sum of 1 and 2 is {}", v);
}

Pair measure(Comm& comm, int64_t bytes) {
  const DeviceScope on({.type = DeviceType::cpu, .index = comm.rank()});
  Tensor t = Tensor::empty({bytes / 4}), source = Tensor::zeros({bytes / 4}),
         target = Tensor::zeros({bytes / 4});
  check(comm, t);
  t.zero();
  const TimingOptions once{.min_iterations = 1, .max_iterations = 1, .warmup_iterations = 0};
  const auto time = [&](Samples& samples, const std::function<void()>& body) {
    samples.seconds.push_back(time_iterations(comm, once, body).seconds.front());
  };
  Pair pair;
  for (int round = 0; round < kRounds; ++round) {
    time(pair.copy,
         [&] { copy_host(target.mutable_raw(), source.raw(), static_cast<size_t>(bytes)); });
    time(pair.all_reduce, [&] { comm.all_reduce(t); });
  }
  return pair;
}

const Pair& measured(int64_t bytes) {
  static std::map<int64_t, Pair> done;
  const auto found = done.find(bytes);
  if (found != done.end()) return found->second;
  Pair& pair = done[bytes];
  launch_threads(kDevices, [&](Comm& comm) {
    Pair mine = measure(comm, bytes);
    if (comm.rank() == 0) pair = std::move(mine);
  });
  return pair;
}

void add_benchmarks(int64_t bytes) {
  const std::string place = fmt::format("bytes:{}/devices:{}", bytes, kDevices);
  const auto add = [&](const std::string& name, const auto& body) {
    benchmark::RegisterBenchmark((name + place).c_str(), body)->Iterations(1)->UseManualTime();
  };
  add("comm/copy_loop/", [bytes](benchmark::State& state) {
    const Samples& samples = measured(bytes).copy;
    const double median = quantile(samples.seconds, 0.5);
    report(state, samples,
           {{metric::kBytesPerS, 2.0 * kDevices * static_cast<double>(bytes) / median}});
  });
  add("comm/all_reduce/local/", [bytes](benchmark::State& state) {
    const auto& [copy, all_reduce] = measured(bytes);
    const double median = quantile(all_reduce.seconds, 0.5);
    const double factor = 2.0 * (kDevices - 1) / kDevices;
    report(state, all_reduce,
           {{metric::kAlgbwBytesPerS, static_cast<double>(bytes) / median},
            {metric::kBusbwBytesPerS, factor * static_cast<double>(bytes) / median},
            {"of_copy", quantile(copy.seconds, 0.5) / median}});
  });
}

}  // namespace
}  // namespace howmany::benches

int main(int argc, char** argv) {
  using namespace howmany::benches;
  add_context();
  for (const int64_t bytes : {int64_t{8}, int64_t{1} << 20, int64_t{64} << 20})
    add_benchmarks(bytes);
  return run_benchmarks(argc, argv);
}
