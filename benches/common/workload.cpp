// SPDX-License-Identifier: Apache-2.0
#include "benches/common/workload.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>

#include "benches/common/device_choice.h"
#include "benches/common/machine.h"
#include "benches/common/program.h"
#include "benches/loader/data.h"
#include "core/backends/selection.h"
#include "core/base/cli/number_check.h"
#include "core/base/cli/option.h"
#include "core/base/error.h"
#include "core/base/schema/flags.h"
#include "core/base/text/names.h"
#include "core/data/formats.h"
#include "core/data/image_folder.h"
#include "core/host/cpu_limits.h"
#include "core/profile/range.h"

namespace howmany::benches {
namespace {

void check_devices(const Workload& work) {
  HM_REQUIRE(!work.devices.empty(), "no device given");
  for (const Device& device : work.devices) require_here(device);
  const std::vector<Device> together = work.devices_together();
  HM_REQUIRE(
      !share_gpus(together) || work.oversubscribe,
      "a GPU is listed twice: pass --oversubscribe for a rehearsal, in which ranks share it");
  const bool shared =
      oversubscribed(together) || std::ranges::any_of(together, [](const Device& device) {
        return device.type == DeviceType::cpu && device.index >= cpu_device_count();
      });
  HM_REQUIRE(
      !shared || work.oversubscribe,
      "{} devices of {} cores each do not fit into {}: pass --oversubscribe to share cores{}",
      together.size(), work.cores_per_device, cpu_limits().because,
      std::getenv("OMPI_COMM_WORLD_SIZE") ? ", or keep mpirun from it by --bind-to none" : "");
}

}  // namespace

bool Workload::uses_gpu() const {
  return std::ranges::any_of(devices, [](const Device& d) { return d.type == DeviceType::cuda; });
}

bool Workload::over_processes() const {
  return mode_traits(mode).over_ranks && backend != "local" && ranks() > 1;
}

std::vector<Device> Workload::devices_of(int rank) const {
  const auto each = devices.size() / static_cast<size_t>(ranks());
  const auto first = devices.begin() + static_cast<ptrdiff_t>(each) * rank;
  return {first, first + static_cast<ptrdiff_t>(each)};
}

Device Workload::device_of(int rank) const {
  return own_device ? *own_device : devices_of(rank).front();
}

std::vector<Device> Workload::devices_together() const {
  const bool gpus = !devices.empty() && devices[0].type == DeviceType::cuda;
  const size_t most =
      (gpus ? own_gpus : own_cores) ? 1 : static_cast<size_t>(std::max(ranks_per_host, 0));
  if (most == 0 || most >= devices.size()) return devices;
  return {devices.begin(), devices.begin() + static_cast<std::ptrdiff_t>(most)};
}

void add_flags(CLI::App& app, Workload& work) {
  const std::map<std::string, OnBadImage> on_bad = {{"skip", OnBadImage::skip},
                                                    {"refuse", OnBadImage::refuse}};
  const std::map<std::string, bool> sync = {{"bucketed", true}, {"inline", false}};
  const auto set_precision = [&](const std::string& name) {
    work.precision = precision_named(name);
  };
  add_option(app, flag::kData, work.data);
  add_option(app, flag::kWorkers, work.workers, "2 for files, else 0")
      ->check(whole_between(0, 1024));
  add_option(app, flag::kOnBadImage, work.on_bad, "refuse")->transform(one_of(on_bad));
  add_option(app, flag::kKernels, work.kernels, "the fastest of this build");
  add_option_function<std::string>(app, flag::kPrecision, set_precision, "f32");
  add_option(app, flag::kOptimizer, work.optimizer);
  add_option(app, flag::kLr, work.optim.lr)->check(at_least_zero());
  add_option(app, flag::kMomentum, work.optim.momentum)->check(at_least_zero());
  add_option(app, flag::kWeightDecay, work.optim.weight_decay)->check(at_least_zero());
  add_option(app, flag::kSeed, work.seed)->check(whole_between(0, kMaxSeed));
  add_option(app, flag::kSync, work.sync.bucketed, "bucketed")->transform(one_of(sync));
  add_switch(app, flag::kSyncBatchnorm, work.sync_batchnorm);
  add_option(app, flag::kCoresPerDevice, work.cores_per_device)->check(above_zero());
  add_option(app, flag::kTimeout, work.timeout_seconds)->check(between(0.1, 86'400));
  add_switch(app, flag::kOversubscribe, work.oversubscribe);
}

void check_kernels(const Workload& work) {
  require_known("kernels", work.kernels, backend_names());
  const DeviceType type = backend_named(work.kernels).device_type();
  HM_REQUIRE(std::ranges::any_of(work.devices, [&](const Device& d) { return d.type == type; }),
             "kernels {} compute on none of the devices given", work.kernels);
}

void check_backend(const Workload& work) {
  if (!work.over_processes() || !comm_traits(work.backend).gpus) return;
  HM_REQUIRE(all_gpus(work.devices) && !share_gpus(work.devices_together()),
             "backend {} needs a GPU for each rank, and the devices are not: give them with "
             "--devices, or take another --backend",
             work.backend);
}

// Each host makes its rows in its own memory, also for GPUs.
void check_memory(const Workload& work, const ModelSpec& model) {
  const double hosts = static_cast<double>(work.count()) /
                       static_cast<double>(std::max<size_t>(1, work.devices_together().size()));
  const double bytes = static_cast<double>(model.sample.numel()) *
                       static_cast<double>(size_of(model.input)) *
                       static_cast<double>(work.global_batch) / hosts;
  HM_REQUIRE(bytes <= memory_bytes(),
             "a batch of {} samples is {:.3g} GB of inputs, more than the memory here ({:.3g} GB)",
             work.global_batch, bytes / 1e9, memory_bytes() / 1e9);
}

// Each rank holds and shuffles the indices of all samples.
void check_order(const Workload& work) {
  const double ranks = static_cast<double>(work.ranks()) *
                       static_cast<double>(work.devices_together().size()) /
                       static_cast<double>(work.count());
  const double bytes = 8 * static_cast<double>(work.samples) * std::max(1.0, ranks);
  HM_REQUIRE(!work.synthetic() || bytes <= memory_bytes(),
             "the order of {} samples is {:.3g} GB, more than the memory here ({:.3g} GB)",
             work.samples, bytes / 1e9, memory_bytes() / 1e9);
}

// Options that would change nothing are refused.
void check_training(const Workload& work, const ModelSpec& model) {
  make_optimizer(work.optimizer, work.optim);
  HM_REQUIRE(work.optim.momentum == 0 || work.optimizer == "sgd",
             "{} is for sgd: {} has moments of its own", flag::kMomentum.name, work.optimizer);
  HM_REQUIRE(!work.sync_batchnorm ||
                 trainable_params(*model.layer).size() < all_params(*model.layer).size(),
             "{}: {} has no batch norm", flag::kSyncBatchnorm.name, model.name);
}

bool can_divide(const Workload& work) {
  const ModelSpec model = make_model(work.model);
  try {
    check_model(work.mode, model, work.ranks());
    return true;
  } catch (const std::invalid_argument&) {
    return false;
  }
}

void check(const Workload& work) {
  const ModeTraits traits = mode_traits(work.mode);
  require_known("backend", work.backend, comm_names());
  require_known("optimizer", work.optimizer, optimizer_names());
  const ModelSpec model = make_model(work.model);
  check_training(work, model);
  check_devices(work);
  if (!work.kernels.empty()) check_kernels(work);
  check_precision(work.precision, work.devices, work.kernels);
  check_mode(work.mode, work.devices);
  HM_REQUIRE(work.count() == 1 || traits.over_ranks || traits.over_devices,
             "mode {} uses one device, not {}", work.mode, work.count());
  check_model(work.mode, model, work.ranks());
  check_backend(work);
  HM_REQUIRE(work.global_batch >= work.count(),
             "a batch of {} is smaller than {} devices: some would have nothing to do",
             work.global_batch, work.count());
  check_memory(work, model);
  check_order(work);
}

}  // namespace howmany::benches
