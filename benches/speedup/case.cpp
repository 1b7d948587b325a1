// SPDX-License-Identifier: Apache-2.0
#include "benches/speedup/case.h"

#include <utility>

#include "core/backends/selection.h"
#include "core/base/schema/defaults.h"
#include "core/base/schema/parameters.h"

namespace howmany::benches {

Case make_case(const SpeedupFlags& flags, const std::string& model, const std::string& mode,
               const std::string& backend, std::vector<Device> devices) {
  Case c{.name = "", .work = flags.work, .strong = flags.global_batch > 0};
  const auto n = static_cast<int64_t>(devices.size());
  const int64_t each = flags.batch_per_device > 0 ? flags.batch_per_device : default_batch(model);
  c.work.model = model;
  c.work.mode = mode;
  c.work.backend = backend;
  c.work.devices = std::move(devices);
  c.work.global_batch = c.strong ? flags.global_batch : each * n;
  c.name = fmt::format("speedup/{}/{}/backend:{}/devices:{}/batch:{}/scaling:{}", mode, model,
                       backend, n, (c.work.global_batch + n - 1) / n, c.strong ? "strong" : "weak");
  if (c.work.precision != Precision::f32)  // older results have f32 names without precision
    c.name += fmt::format("/precision:{}", name_of(c.work.precision));
  return c;
}

SampleLine sample_line(const Case& c, const Samples& samples,
                       const std::vector<std::string>& marks) {
  const Workload& work = c.work;
  return {
      .name = c.name,
      .samples = samples,
      .flags = marks,
      .parameters = {{parameter::kMode, work.mode},
                     {parameter::kModel, work.model},
                     {parameter::kBackend, work.backend},
                     {parameter::kDevices, std::to_string(work.count())},
                     {parameter::kBatchPerDevice,
                      std::to_string((work.global_batch + work.count() - 1) / work.count())},
                     {parameter::kGlobalBatch, std::to_string(work.global_batch)},
                     {parameter::kScaling, c.strong ? "strong" : "weak"},
                     {parameter::kKernels,
                      work.kernels.empty()
                          ? std::string(
                                backend_for(Tensor::empty({1}, Dtype::f32, work.devices[0])).name())
                          : work.kernels},
                     {parameter::kPrecision, std::string(name_of(work.precision))},
                     {parameter::kCoresPerDevice, std::to_string(work.cores_per_device)}},
      .world = work.ranks()};
}

}  // namespace howmany::benches
