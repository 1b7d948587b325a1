// SPDX-License-Identifier: Apache-2.0
#include "parallel/modes/staged.h"

#include <algorithm>
#include <exception>
#include <numeric>
#include <optional>

#include "core/backends/selection.h"
#include "core/base/error.h"
#include "parallel/comm/first_failure.h"
#include "parallel/modes/tensor_parts.h"
#include "parallel/pipeline/placement.h"
#include "parallel/pipeline/stage.h"
#include "parallel/pipeline/stage_costs.h"
#include "parallel/sync/agreement.h"
#include "parallel/sync/batch.h"
#include "parallel/sync/primitives.h"

namespace howmany {
namespace {

// Parses a placement, which must use exactly the given devices. Returns the bounds of the parts.
std::vector<size_t> as_placed(const std::string& text, size_t units, std::vector<Device>& devices) {
  std::vector<size_t> bounds{0};
  std::vector<Device> used;
  for (const PlacedPart& part : parse_placement(text, units)) {
    bounds.push_back(part.end);
    used.push_back(part.device);
    HM_REQUIRE(devices.empty() || std::ranges::find(devices, part.device) != devices.end(),
               "[placement] {} is not one of the devices given", part.device.str());
  }
  for (const Device& device : devices)
    HM_REQUIRE(std::ranges::find(used, device) != used.end(),
               "[placement] {} is given, but no unit is placed there", device.str());
  devices = std::move(used);
  return bounds;
}

class Staged : public Mode {
 public:
  Staged(ModeArgs args, const StagedLayout& layout)
      : name_(layout.mode),
        model_(std::move(args.model)),
        dtype_(args.dtype),
        schedule_(args.options.schedule),
        world_(layout.ranks.size() > 1 ? args.comm : nullptr) {
    if (args.devices.empty() && args.options.placement.empty()) args.devices.emplace_back();
    if (world_ != nullptr) mesh_.emplace(*world_, layout.ranks);
    if (shape().tensor > 1)
      parts_.emplace(model_, mesh_->tensor(), args.devices[0],
                     [this](Tensor t) { sum_parts(std::move(t)); });
    divide(args, layout);
    make_stages(args, layout);
    make_syncs(args);
    const int otherwise = layout.stages_are_devices ? 1 : 4 * stage_count();
    micro_batches_ = args.options.micro_batches > 0 ? args.options.micro_batches : otherwise;
  }

  Share share() const override { return {at().data, shape().data}; }

  // At most the number of rows of the smallest share.
  int micro_batches(int64_t global_rows) const override {
    return static_cast<int>(std::min<int64_t>(micro_batches_, global_rows / shape().data));
  }

  StepLoss step(const Batch& mine) override {
    check_batch(mine);
    check_rows(name_, mine.global_rows, shape().data, "replicas");
    try {
      return run(mine, micro_batches(mine.global_rows));
    } catch (const std::exception& e) {
      abort(e.what());
      throw;
    }
  }

  std::vector<Param*> params() override {
    std::vector<Param*> all;
    for (const auto& stage : stages_) std::ranges::copy(stage->params(), std::back_inserter(all));
    return all;
  }

  std::map<std::string, Tensor> gather() override {
    std::map<std::string, Tensor> values;
    if (at().data > 0) return values;
    std::vector<Tensor> in_order;
    for (const auto& stage : stages_)
      for (const Param* p : stage->params_and_buffers()) {
        in_order.push_back(whole(*p, p->value));
        values[p->name] = in_order.back();
      }
    if (at().tensor > 0) return {};
    if (shape().stage == 1) return values;
    if (at().stage == 0) return receive_others(std::move(values));
    for (const Tensor& value : in_order) mesh_->stage().send(value.to(Device{}), 0);
    return {};
  }

  std::map<std::string, Tensor> gradients() override {
    if (!parts_) return Mode::gradients();
    std::map<std::string, Tensor> grads;
    for (const Param* p : params()) grads[p->name] = parts_->whole(*p, p->grad);
    return grads;
  }

  StepReport report() const override { return report_; }

 private:
  MeshShape shape() const { return mesh_ ? mesh_->shape() : MeshShape{}; }
  Tensor whole(const Param& p, const Tensor& value) {
    return parts_ ? parts_->whole(p, value) : value.clone();
  }
  Coordinates at() const { return mesh_ ? mesh_->at() : Coordinates{}; }
  int stage_count() const { return static_cast<int>(bounds_.size()) - 1; }

  void divide(ModeArgs& args, const StagedLayout& layout) {
    const size_t count = units(*model_.layer).size();
    const int stages =
        layout.stages_are_devices ? static_cast<int>(args.devices.size()) : layout.ranks.stage;
    if (!args.options.placement.empty()) {
      bounds_ = as_placed(args.options.placement, count, args.devices);
      return;
    }
    check_stages(name_, model_, stages);
    bounds_ = {0, count};
    if (stages == 1) return;
    const MyStages mine{.all = stages,
                        .first = at().stage,
                        .devices = args.devices,
                        .flop_per_byte = args.flop_per_byte};
    bounds_ = balance(stage_costs(model_, dtype_, mine, world_));
  }

  void make_stages(ModeArgs& args, const StagedLayout& layout) {
    const uint64_t seed = world_ == nullptr ? args.seed : of_rank_0(*world_, args.seed);
    const ModelSpec divided = parts_ ? parts_->take_model() : ModelSpec();
    const ModelSpec& model = parts_ ? divided : model_;
    std::vector<StageLinks> links(1);
    if (layout.stages_are_devices)
      links = connect_threads(args.devices);
    else if (mesh_)
      links[0] = connect_stages(mesh_->stage(), args.devices[0]);
    const bool whole = stages_store_whole(args.devices);
    for (size_t i = 0; i < links.size(); ++i) {
      const StageOptions options{.index = at().stage + static_cast<int>(i),
                                 .count = stage_count(),
                                 .bounds = bounds_,
                                 .device = args.devices[i],
                                 .dtype = dtype_,
                                 .seed = seed,
                                 .schedule = args.options.schedule,
                                 .sum_statistics = statistics_sum(args),
                                 .logits = divided_logits(),
                                 .recompute = args.options.recompute,
                                 .sends_whole = whole};
      stages_.push_back(std::make_unique<Stage>(model, options, std::move(links[i])));
    }
    if (parts_ && args.devices[0].type != DeviceType::meta)
      parts_->take_initial(stages_[0]->params_and_buffers(), dtype_, seed);
    if (stages_.size() > 1) threads_.emplace(args.devices);
  }

  // Includes the stages of other ranks.
  bool stages_store_whole(const std::vector<Device>& mine) {
    const bool here = std::ranges::all_of(
        mine, [&](const Device& device) { return stored_dtype(dtype_, device) == dtype_; });
    if (world_ == nullptr || stored_on_gpus(dtype_) == dtype_) return here;
    return on_all_ranks(*world_, here);
  }

  std::optional<DividedLogits> divided_logits() {
    if (!parts_) return {};
    return parts_->logits([this](Tensor part) {
      const auto scope = stages_[0]->clock().exchange_in_work();
      Tensor all = parts_->empty_for_all(part);
      mesh_->tensor().all_gather(part, all);
      return all;
    });
  }

  // For the layers that the ranks of a stage divide.
  void sum_parts(Tensor t) {
    const auto scope = stages_[0]->clock().exchange_in_work();
    mesh_->tensor().all_reduce(std::move(t));
  }

  SumOverReplicas statistics_sum(const ModeArgs& args) {
    if (!args.sync_batchnorm || shape().data == 1) return {};
    data_.push_back(mesh_->data().split(0, at().data));
    return [comm = data_.back().get()](Tensor t) { comm->all_reduce(std::move(t)); };
  }

  // One Comm per stage of this rank, so that their threads do not wait for each other.
  void make_syncs(const ModeArgs& args) {
    if (shape().data == 1) return;
    GradSyncOptions options = args.sync;
    options.host_waits = true;  // a GPU that waits could block stages of other ranks that share it
    for (const auto& stage : stages_) {
      data_.push_back(mesh_->data().split(0, at().data));
      syncs_.push_back(make_grad_sync(*data_.back(), stage->params(), options));
    }
  }

  double run(const Batch& mine, int micro_batches) {
    std::vector<double> losses(stages_.size());
    for_each_stage([&](size_t i) {
      stages_[i]->clock().begin();
      losses[i] = run_stage(i, mine, micro_batches);
      stages_[i]->clock().end();
    });
    std::vector<DeviceTimes> times;
    for (const auto& stage : stages_) times.push_back(stage->clock().times());
    double loss = std::accumulate(losses.begin(), losses.end(), 0.0);
    double whole = std::ranges::max(times, {}, &DeviceTimes::whole).whole;
    if (shape().stage > 1) share(loss, whole);
    tell(times, whole, micro_batches);
    return loss;
  }

  double run_stage(size_t i, const Batch& mine, int micro_batches) {
    if (syncs_.empty()) return stages_[i]->step(mine, micro_batches, {});
    const auto ready = [&](Param& p) { syncs_[i]->ready(p); };
    const double loss = stages_[i]->step(mine, micro_batches, ready);
    const auto scope = stages_[i]->clock().exchanging();
    return syncs_[i]->finish(Tensor::full({1}, loss, Dtype::f64)).value();
  }

  // Over the ranks of this replica: sums the losses and takes the longest step.
  void share(double& loss, double& whole) {
    std::vector<double> values(1 + static_cast<size_t>(shape().stage));
    values[0] = loss;
    values[1 + static_cast<size_t>(at().stage)] = whole;
    const Tensor sum = Tensor::from(values, {std::ssize(values)});
    mesh_->stage().all_reduce(sum);
    const auto all = sum.values<double>();
    loss = all[0];
    whole = std::ranges::max(all.subspan(1));
  }

  // Reports the first stage that fails, and wakes the others.
  void for_each_stage(const std::function<void(size_t)>& body) {
    if (!threads_) return body(0);
    FirstFailure failure;
    (*threads_)(static_cast<int>(stages_.size()), [&](int i) {
      try {
        body(static_cast<size_t>(i));
      } catch (const std::exception& e) {
        failure.keep(std::current_exception());
        abort(e.what());
      }
    });
    failure.rethrow();
  }

  void abort(std::string_view why) {
    for (const auto& stage : stages_) stage->close(why);
    for (const auto& comm : data_) comm->abort(why);
    if (mesh_) mesh_->abort(why);
  }

  // The time of a stage that is neither own work nor exchange is waiting for other stages. If a
  // rank is one stage, that is waiting for other ranks.
  void tell(const std::vector<DeviceTimes>& times, double whole, int micro_batches) {
    report_ = {.theoretical_bubble = theoretical_bubble(schedule_, stage_count(), micro_batches)};
    double idle = 0;
    for (const DeviceTimes& t : times) {
      idle += std::max(0.0, whole - t.work - t.exchange) / static_cast<double>(times.size());
      report_.exposed_communication_seconds =
          std::max(report_.exposed_communication_seconds, t.exchange);
    }
    if (whole > 0) report_.bubble = idle / whole;
    report_.waited_seconds = report_.exposed_communication_seconds + (shape().stage > 1 ? idle : 0);
  }

  // The model determines the names and shapes of the other stages' parameters.
  std::map<std::string, Tensor> receive_others(std::map<std::string, Tensor> values) {
    const std::vector<Unit> all = units(*model_.layer);
    for (int stage = 1; stage < stage_count(); ++stage) {
      const size_t begin = bounds_[static_cast<size_t>(stage)];
      const size_t end = bounds_[static_cast<size_t>(stage) + 1];
      const LayerPtr theirs = part(std::span(all).subspan(begin, end - begin));
      name_params(*theirs);
      for (const Param* p : all_params(*theirs)) {
        Tensor value = Tensor::empty(p->shape, dtype_);
        mesh_->stage().receive(value, stage);
        values[p->name] = value;
      }
    }
    return values;
  }

  std::string name_;
  ModelSpec model_;  // whole, never materialized
  Dtype dtype_;
  std::string schedule_;
  Comm* world_;
  std::optional<Mesh> mesh_;
  std::optional<TensorParts> parts_;  // if ranks divide the layers of a stage
  std::vector<size_t> bounds_;
  std::vector<std::unique_ptr<Stage>> stages_;
  std::vector<std::unique_ptr<Comm>> data_;  // for gradients and for statistics
  std::vector<std::unique_ptr<GradSync>> syncs_;
  std::optional<ParallelApply> threads_;
  int micro_batches_ = 1;
  StepReport report_;
};

}  // namespace

std::unique_ptr<Mode> staged(ModeArgs args, const StagedLayout& layout) {
  return std::make_unique<Staged>(std::move(args), layout);
}

}  // namespace howmany
