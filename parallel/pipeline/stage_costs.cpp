// SPDX-License-Identifier: Apache-2.0
#include "parallel/pipeline/stage_costs.h"

#include <algorithm>

namespace howmany {
namespace {

constexpr DeviceType kTypes[] = {DeviceType::cpu, DeviceType::cuda, DeviceType::meta};

// Returns the number of rows to measure, from 2 to 32: enough for a stable time, few enough for a
// short one. A GPU needs more rows to be busy, and is faster.
int64_t rows_to_measure(const ModelSpec& model, DeviceType type) {
  const double affordable_flop = type == DeviceType::cuda ? 5e11 : 2e9;
  const double flop = step_flop(*model.layer, with_rows_in_front(1, model.sample));
  return std::clamp<int64_t>(static_cast<int64_t>(affordable_flop / std::max(flop, 1.0)), 2, 32);
}

UnitCosts seconds_a_row(const ModelSpec& model, Dtype dtype, Device device, double flop_per_byte) {
  const int64_t rows = rows_to_measure(model, device.type);
  UnitCosts costs = measure_units(units(*model.layer), {.rows = rows,
                                                        .sample = model.sample,
                                                        .input = model.input,
                                                        .dtype = dtype,
                                                        .device = device,
                                                        .flop_per_byte = flop_per_byte});
  for (double& cost : costs) cost /= static_cast<double>(rows);
  return costs;
}

// For one device type over all ranks: the stages on it, and the rank that measures it (the root).
class StageOwners {
 public:
  StageOwners(DeviceType type, const MyStages& mine, Comm* world)
      : type_(type), mine_(mine), world_(world), has_stage_(static_cast<size_t>(mine.all)) {
    for (size_t i = 0; i < mine.devices.size(); ++i)
      if (mine.devices[i].type == type) has_stage_[static_cast<size_t>(mine.first) + i] = 1;
    std::vector<double> shared = has_stage_;
    shared.push_back(my_device() == mine.devices.end() ? 0 : size() - rank());  // first rank: most
    share(shared, [&](Tensor t) { world->all_reduce(std::move(t), ReduceOp::max); });
    root_ = size() - static_cast<int>(shared.back());
    shared.pop_back();
    has_stage_ = std::move(shared);
  }

  bool owns(size_t stage) const { return has_stage_[stage] > 0; }
  bool has_root() const { return root_ < size(); }

  UnitCosts measured(const ModelSpec& model, Dtype dtype) const {
    UnitCosts costs(units(*model.layer).size());
    if (root_ == rank()) costs = seconds_a_row(model, dtype, *my_device(), mine_.flop_per_byte);
    share(costs, [&](Tensor t) { world_->broadcast(std::move(t), root_); });
    return costs;
  }

 private:
  int size() const { return world_ == nullptr ? 1 : world_->size(); }
  int rank() const { return world_ == nullptr ? 0 : world_->rank(); }
  std::vector<Device>::const_iterator my_device() const {
    return std::ranges::find(mine_.devices, type_, &Device::type);
  }

  template <typename Call>
  void share(std::vector<double>& values, const Call& call) const {
    if (world_ == nullptr) return;
    const Tensor t = Tensor::from(values, {std::ssize(values)});
    call(t);
    std::ranges::copy(t.values<double>(), values.begin());
  }

  const DeviceType type_;
  const MyStages& mine_;
  Comm* const world_;
  std::vector<double> has_stage_;  // 1 for each stage on the type
  int root_ = 0;                   // the world size if no rank has the type
};

}  // namespace

std::vector<UnitCosts> stage_costs(const ModelSpec& model, Dtype dtype, const MyStages& mine,
                                   Comm* world) {
  std::vector<UnitCosts> costs(static_cast<size_t>(mine.all),
                               UnitCosts(units(*model.layer).size()));
  for (const DeviceType type : kTypes) {
    const StageOwners owners(type, mine, world);
    if (!owners.has_root()) continue;
    const UnitCosts these = owners.measured(model, dtype);
    for (size_t stage = 0; stage < costs.size(); ++stage)
      if (owners.owns(stage))
        std::ranges::transform(costs[stage], these, costs[stage].begin(), std::ranges::max);
  }
  return costs;
}

}  // namespace howmany
