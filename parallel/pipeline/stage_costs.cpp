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

UnitCosts seconds_a_row(const ModelSpec& model, Dtype dtype, Device device) {
  const int64_t rows = rows_to_measure(model, device.type);
  UnitCosts costs = measure_units(units(*model.layer), {.rows = rows,
                                                        .sample = model.sample,
                                                        .input = model.input,
                                                        .dtype = dtype,
                                                        .device = device});
  for (double& cost : costs) cost /= static_cast<double>(rows);
  return costs;
}

// For one device type over all ranks: the stages on it, and the rank that measures it.
class Standing {
 public:
  Standing(DeviceType type, const MyStages& mine, Comm* world)
      : type_(type), mine_(mine), world_(world), told_(static_cast<size_t>(mine.all) + 1) {
    for (size_t i = 0; i < mine.devices.size(); ++i)
      if (mine.devices[i].type == type) told_[static_cast<size_t>(mine.first) + i] = 1;
    if (here() != mine.devices.end()) told_.back() = size() - rank();
    share(told_, [&](Tensor t) { world->all_reduce(std::move(t), ReduceOp::max); });
  }

  bool at(size_t stage) const { return told_[stage] > 0; }
  bool anywhere() const { return told_.back() > 0; }

  UnitCosts measured(const ModelSpec& model, Dtype dtype) const {
    const int by = size() - static_cast<int>(told_.back());
    UnitCosts costs(units(*model.layer).size());
    if (by == rank()) costs = seconds_a_row(model, dtype, *here());
    share(costs, [&](Tensor t) { world_->broadcast(std::move(t), by); });
    return costs;
  }

 private:
  int size() const { return world_ == nullptr ? 1 : world_->size(); }
  int rank() const { return world_ == nullptr ? 0 : world_->rank(); }
  std::vector<Device>::const_iterator here() const {
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
  std::vector<double> told_;  // 1 for each stage on the type; last element: world size minus the
                              // rank that measures, or 0 if no rank has the type
};

}  // namespace

std::vector<UnitCosts> stage_costs(const ModelSpec& model, Dtype dtype, const MyStages& mine,
                                   Comm* world) {
  std::vector<UnitCosts> costs(static_cast<size_t>(mine.all),
                               UnitCosts(units(*model.layer).size()));
  for (const DeviceType type : kTypes) {
    const Standing standing(type, mine, world);
    if (!standing.anywhere()) continue;
    const UnitCosts these = standing.measured(model, dtype);
    for (size_t stage = 0; stage < costs.size(); ++stage)
      if (standing.at(stage))
        std::ranges::transform(costs[stage], these, costs[stage].begin(), std::ranges::max);
  }
  return costs;
}

}  // namespace howmany
