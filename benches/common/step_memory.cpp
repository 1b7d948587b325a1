// SPDX-License-Identifier: Apache-2.0
#include "benches/common/step_memory.h"

#include <algorithm>
#include <mutex>
#include <optional>

#include "benches/common/meta_batch.h"
#include "core/backends/backend.h"
#include "core/backends/selection.h"
#include "core/base/error.h"
#include "core/tensor/meta.h"
#include "parallel/comm/simulation.h"

namespace howmany::benches {
namespace {

constexpr int64_t kMaxRows = 1 << 16;  // per device, of largest_batch()
constexpr int kMaxThreads = 256;

int64_t in_use(const std::vector<Device>& devices, size_t i) {
  return meta_memory_use(devices[i].index).in_use;
}

bool on_cpus(const Workload& work) {
  return !work.kernels.empty() && backend_named(work.kernels).device_type() == DeviceType::cpu;
}

// How the calling thread computes until the end of the scope.
class EstimateScope {
 public:
  explicit EstimateScope(const Workload& work) : precision_(work.precision) {
    if (!on_cpus(work)) return;
    team_.emplace(Device{});
    if (const Backend* const kernels = backend_named(work.kernels).on_meta())
      kernels_.emplace(*kernels);
  }

 private:
  const PrecisionScope precision_;
  std::optional<DeviceScope> team_;
  std::optional<BackendScope> kernels_;
};

// Returns the memory of this rank's device with the highest peak.
StepMemory run_steps(const Workload& work, Comm* comm, const std::vector<Device>& mine) {
  const EstimateScope scope(work);
  const auto mode = make_mode(work.mode, {.model = make_model(work.model),
                                          .comm = comm,
                                          .devices = mine,
                                          .sync = work.sync,
                                          .sync_batchnorm = work.sync_batchnorm});
  const auto optimizer = make_optimizer(work.optimizer, work.optim);
  std::vector<StepMemory> all(mine.size());
  for (size_t i = 0; i < mine.size(); ++i) all[i].model = in_use(mine, i);
  const Batch batch =
      meta_batch(make_model(work.model), work.global_batch, mode->share(), mine.front());
  StepLoss loss = mode->step(batch);
  for (size_t i = 0; i < mine.size(); ++i) all[i].optimizer = -in_use(mine, i);
  optimizer->step(mode->params());
  for (size_t i = 0; i < mine.size(); ++i) {
    all[i].optimizer += in_use(mine, i);
    reset_meta_peak(mine[i].index);
  }
  loss = mode->step(batch);
  optimizer->step(mode->params());
  for (size_t i = 0; i < mine.size(); ++i)
    all[i].step = meta_memory_use(mine[i].index).peak - all[i].model - all[i].optimizer;
  return *std::ranges::max_element(all, {}, &StepMemory::peak);
}

// Runs one rank of a group, without the other ranks. Ranks of CPUs communicate over Gloo.
StepMemory of_one_rank(const Workload& work) {
  const Simulation others({.world = work.count(), .scatter_takes_copy = on_cpus(work)});
  const std::unique_ptr<Comm> comm = others.join(0);
  return run_steps(work, comm.get(), meta_devices(0, 1));
}

// All ranks, as threads.
StepMemory of_all_ranks(const Workload& work) {
  const int ranks = work.ranks(), each = work.count() / ranks;
  StepMemory most;
  std::mutex mutex;
  launch_threads(ranks, [&](Comm& comm) {
    const StepMemory mine = run_steps(work, &comm, meta_devices(comm.rank() * each, each));
    const std::lock_guard lock(mutex);
    if (mine.peak() > most.peak()) most = mine;
  });
  return most;
}

}  // namespace

StepMemory step_memory(const Workload& work) {
  HM_REQUIRE(work.global_batch >= work.count(), "{} samples for {} devices", work.global_batch,
             work.count());
  if (on_cpus(work)) check_precision(work.precision, std::vector{Device{}}, work.kernels);
  const ModeTraits traits = mode_traits(work.mode);
  if (traits.over_ranks && traits.equal_ranks) return of_one_rank(work);
  HM_REQUIRE(work.count() <= kMaxThreads, "{} is estimated for at most {} devices", work.mode,
             kMaxThreads);
  if (traits.over_ranks) return of_all_ranks(work);
  return run_steps(work, nullptr, meta_devices(0, work.count()));
}

int64_t largest_batch(Workload work, int64_t bytes) {
  const auto fits = [&](int64_t rows) {
    work.global_batch = rows * work.count();
    return step_memory(work).peak() <= bytes;
  };
  if (!fits(1)) return 0;
  int64_t good = 1, bad = 2;
  while (bad <= kMaxRows && fits(bad)) good = std::exchange(bad, 2 * bad);
  while (good + 1 < bad) {
    const int64_t middle = good + (bad - good) / 2;
    (fits(middle) ? good : bad) = middle;
  }
  return good;
}

}  // namespace howmany::benches
