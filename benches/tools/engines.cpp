// SPDX-License-Identifier: Apache-2.0
#include "benches/tools/engines.h"

#include <nlohmann/json.hpp>

#include "benches/common/trainer.h"
#include "core/base/error.h"
#include "core/gpu/fallbacks.h"
#include "core/gpu/gpu.h"
#include "core/gpu/tuning.h"

namespace howmany::benches {
namespace {

constexpr int kEngineSteps = 2;  // the second call of a product measures its algorithms

Workload workload_of(const std::string& model, int64_t batch, Precision precision) {
  Workload work;
  work.model = model;
  work.devices = {{DeviceType::cuda, 0}};
  work.global_batch = batch;
  work.precision = precision;
  work.steady = true;
  check(work);
  return work;
}

void train_steps(const Workload& work) {
  const DatasetPtr data = open_dataset(work);
  launch_threads(1, [&](Comm& alone) {
    const Device device = work.devices[0];
    const DeviceScope on(device);
    const PrecisionScope precision(work.precision);
    Trainer trainer(work, *data, alone, device);
    for (int step = 0; step < kEngineSteps; ++step) trainer.train(trainer.next()).value();
  });
}

}  // namespace

nlohmann::json engines_of(const std::vector<std::string>& models, int64_t batch) {
  HM_REQUIRE(gpu::count() > 0, "no GPU: {}", gpu::unavailable());
  std::vector<Workload> works;
  for (const std::string& model : models)
    for (const Precision precision : {Precision::bf16, Precision::f32})
      works.push_back(workload_of(model, batch, precision));
  nlohmann::json operations = nlohmann::json::array(), fallbacks = nlohmann::json::array();
  size_t known = gpu::engines().size();
  for (const Workload& work : works) {
    train_steps(work);
    const std::vector<gpu::EngineChoice> all = gpu::engines();
    for (; known < all.size(); ++known)
      operations.push_back({{"model", work.model},
                            {"precision", name_of(work.precision)},
                            {"operation", all[known].what},
                            {"engine", all[known].engine}});
  }
  for (const gpu::Fallback& one : gpu::fallbacks())
    fallbacks.push_back({{"operation", one.what}, {"why", one.why}});
  return {
      {"libraries", gpu::tuning_libraries()}, {"operations", operations}, {"fallbacks", fallbacks}};
}

}  // namespace howmany::benches
