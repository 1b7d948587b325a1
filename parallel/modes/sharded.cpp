// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <deque>
#include <functional>
#include <optional>

#include "core/backends/selection.h"
#include "core/base/error.h"
#include "core/nn/layers.h"
#include "core/nn/units.h"
#include "parallel/modes/mode.h"
#include "parallel/modes/replica.h"
#include "parallel/modes/shard.h"
#include "parallel/sync/agreement.h"
#include "parallel/sync/batch.h"
#include "parallel/sync/step_clock.h"

namespace howmany {
namespace {

// How many units may hold whole gradients while these are exchanged.
constexpr size_t kMaxLeaving = 2;

// A unit that calls back around its forward and backward.
class CountingLayer final : public Layer {
 public:
  struct Hooks {
    std::function<void()> before_forward, after_forward, before_backward, after_backward;
  };
  CountingLayer(LayerPtr layer, Hooks hooks) : layer_(std::move(layer)), hooks_(std::move(hooks)) {}

  Tensor forward(const Tensor& x, Tape& tape) override {
    hooks_.before_forward();
    Tensor y = layer_->forward(x, tape);
    hooks_.after_forward();
    return y;
  }
  Tensor backward(const Tensor& dy, Tape& tape) override {
    hooks_.before_backward();
    Tensor dx = layer_->backward(dy, tape);
    hooks_.after_backward();
    return dx;
  }
  Shape output_shape(const Shape& x) const override { return layer_->output_shape(x); }
  double forward_flop(const Shape& x) const override { return layer_->forward_flop(x); }
  std::string describe() const override { return layer_->describe(); }
  LayerPtr clone() const override { return layer_->clone(); }
  std::vector<Child> children() override { return {{"", layer_.get()}}; }

 private:
  LayerPtr layer_;
  Hooks hooks_;
};

// A unit without parameters belongs to the one before it.
std::vector<std::span<const Unit>> groups_of(std::span<const Unit> all) {
  std::vector<std::span<const Unit>> groups;
  size_t begin = 0;
  bool has_params = false;
  for (size_t i = 0; i < all.size(); ++i) {
    const bool more = !trainable_params(*all[i].layer).empty();
    if (more && has_params) groups.push_back(all.subspan(begin, i - begin));
    if (more && has_params) begin = i;
    has_params = has_params || more;
  }
  groups.push_back(all.subspan(begin));
  return groups;
}

// As torch FSDP2 (level 3) and ZeRO (levels 1 and 2): the next unit is gathered while this one
// computes, and gradients leave while backward goes on.
class Sharded : public Mode {
 public:
  explicit Sharded(ModeArgs args)
      : comm_(*args.comm),
        level_(args.options.level),
        recompute_(args.options.recompute),
        device_(args.devices.empty() ? Device{} : args.devices[0]),
        replica_(divided(args), device_, args.dtype, Replica::Materialized{}),
        clock_(device_) {
    replica_.accumulate(args.options.accumulate, comm_.size());
    replica_.set_seed(seed_);
    if (args.sync_batchnorm && comm_.size() > 1)
      statistics_.emplace(comm_, replica_,
                          device_.type == DeviceType::cuda && device_ == comm_.native_device());
  }

  Share share() const override { return {comm_.rank(), comm_.size()}; }

  int micro_batches(int64_t global_rows) const override {
    return replica_.micro_batches(global_rows);
  }

  StepLoss step(const Batch& mine) override {
    check_rows("sharded", mine.global_rows, comm_.size(), "ranks");
    clock_.begin();
    small_begun_ = false;
    each(&Shard::change_values);
    if (level_ < 3) each(&Shard::gather);
    if (small_) {
      small_->change_values();
      small_->gather();
    }
    Tensor loss = replica_.step(mine);
    Work summed = comm_.all_reduce_async(loss);
    while (!leaving_.empty()) wait_for_oldest();
    const auto scope = clock_.exchanging();
    if (small_) small_->wait_grads();
    summed.wait();
    StepLoss total(loss, summed);
    if (statistics_) total.add(statistics_->last());
    return total;
  }

  StepReport report() const override {
    const double waited = clock_.times().exchange;
    return {.exposed_communication_seconds = waited, .waited_seconds = waited};
  }

  std::vector<Param*> params() override {
    std::vector<Param*> parts;
    each_and_small([&](Shard& shard) { parts.push_back(&shard.part()); });
    return parts;
  }

  std::map<std::string, Tensor> gradients() override {
    std::map<std::string, Tensor> grads;
    each_and_small([&](Shard& shard) { shard.gather_grads(grads); });
    return grads;
  }

  std::map<std::string, Tensor> gather() override {
    std::map<std::string, Tensor> values;
    each_and_small([&](Shard& shard) { shard.gather_values(values); });
    for (const Param* p : replica_.params_and_buffers())
      if (!p->trainable) values[p->name] = p->value.clone();
    comm_.finish();  // a call that failed in flight spoiled the values
    if (statistics_) statistics_->finish();
    return comm_.rank() == 0 ? values : std::map<std::string, Tensor>{};
  }

 private:
  // Materializes and divides one unit after the other, so that the whole model is never here.
  ModelSpec divided(ModeArgs& args) {
    const DeviceScope on(device_);
    seed_ = of_rank_0(comm_, args.seed);
    read_ = dtype_to_read(args.dtype);
    ModelSpec model = std::move(args.model);
    Layer* const inner = model.layer->inner_chain();
    const std::vector<Unit> all = units(inner == nullptr ? *model.layer : *inner);
    const std::span<const Unit> rest = std::span(all).subspan(inner == nullptr ? 0 : 1);
    std::vector<LayerPtr> parts;
    if (inner != nullptr) parts.push_back(shard(std::span(all).first(1), args.dtype));
    for (const std::span<const Unit> group : groups_of(rest)) {
      LayerPtr layer = shard(group, args.dtype);
      if (recompute_) layer = layers::recomputed(std::move(layer));
      parts.push_back(
          std::make_unique<CountingLayer>(std::move(layer), hooks_of(units_.size() - 1)));
    }
    if (!small_params_.empty()) small_.emplace(std::move(small_params_), comm_, 1, args.dtype);
    LayerPtr chain = layers::sequential(std::move(parts));
    // The first unit is used before and after the others, so it stays whole for the step.
    model.layer = inner == nullptr ? std::move(chain)
                                   : std::make_unique<CountingLayer>(
                                         model.layer->over(std::move(chain)), hooks_of(0, true));
    return model;
  }

  // The dtype in which level 3 gathers values that each use rounds, equal on all ranks.
  Dtype dtype_to_read(Dtype dtype) {
    if (level_ < 3 || comm_.size() == 1 || current_precision() != Precision::bf16) return dtype;
    const Dtype stored = stored_dtype(dtype, device_);
    return on_all_ranks(comm_, stored != dtype) ? stored : dtype;
  }

  LayerPtr shard(std::span<const Unit> group, Dtype dtype) {
    LayerPtr layer = part(group);
    materialize(*layer, {.device = device_, .dtype = dtype, .seed = seed_});
    const std::vector<Param*> params = trainable_params(*layer);
    HM_REQUIRE(!params.empty(), "[sharded] the model has no parameters");
    std::vector<Param*> here;
    for (Param* p : params) (p->rounded || read_ == dtype ? here : small_params_).push_back(p);
    units_.emplace_back();
    if (!here.empty()) units_.back().emplace(std::move(here), comm_, level_, read_);
    return layer;
  }

  template <typename Call>
  void with(size_t unit, const Call& call) {
    if (units_[unit]) std::invoke(call, *units_[unit]);
  }
  template <typename Call>
  void each(const Call& call) {
    for (size_t i = 0; i < units_.size(); ++i) with(i, call);
  }
  template <typename Call>
  void each_and_small(const Call& call) {
    each(call);
    if (small_) call(*small_);
  }

  CountingLayer::Hooks hooks_of(size_t i, bool stays = false) {
    return {.before_forward =
                [this, i] {
                  wait_for_values(i);
                  if (i + 1 < units_.size()) with(i + 1, &Shard::gather);
                },
            // Backward begins with the last unit.
            .after_forward =
                [this, i, stays] {
                  if (i + 1 < units_.size() && !stays) with(i, &Shard::release_values);
                },
            .before_backward =
                [this, i] {
                  wait_for_values(i);
                  if (i > 0) with(i - 1, &Shard::gather);
                  while (std::ranges::find(leaving_, i) != leaving_.end()) wait_for_oldest();
                  begin_grads(i);
                },
            .after_backward =
                [this, i] {
                  with(i, &Shard::release_values);
                  const bool last = replica_.micro_batch().last();
                  if (level_ > 1 || last) reduce(i);
                  if (i == 0) small_begun_ = false;
                  if (i == 0 && last && small_) small_->reduce();
                }};
  }

  void begin_grads(size_t i) {
    const bool more = replica_.micro_batch().index > 0;
    with(i, [more](Shard& shard) { shard.begin_grads(more); });
    if (small_ && !std::exchange(small_begun_, true)) small_->begin_grads(more);
  }

  void reduce(size_t i) {
    if (leaving_.size() == kMaxLeaving) wait_for_oldest();
    with(i, &Shard::reduce);
    leaving_.push_back(i);
  }

  void wait_for_values(size_t i) {
    const auto scope = clock_.exchanging();
    with(i, &Shard::wait_values);
    if (small_) small_->wait_values();
  }

  void wait_for_oldest() {
    const auto scope = clock_.exchanging();
    with(leaving_.front(), &Shard::wait_grads);
    leaving_.pop_front();
  }

  Comm& comm_;
  const int level_;
  const bool recompute_;
  const Device device_;
  uint64_t seed_ = 0;
  Dtype read_ = Dtype::f32;
  std::deque<std::optional<Shard>> units_;  // in forward order; the hooks refer to them
  // Values that not each use rounds, such as biases and those of norms. They stay whole, and are
  // exchanged in one call, if the units are gathered in bf16.
  std::vector<Param*> small_params_;
  std::optional<Shard> small_;
  bool small_begun_ = false;  // their gradients, in this backward pass
  Replica replica_;
  std::optional<SharedStatistics> statistics_;
  std::deque<size_t> leaving_;  // units: their gradients are being exchanged; the oldest first
  StepClock clock_;
};

}  // namespace

std::unique_ptr<Mode> modes::sharded(ModeArgs args) {
  return std::make_unique<Sharded>(std::move(args));
}

}  // namespace howmany
