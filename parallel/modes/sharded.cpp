// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <deque>
#include <optional>

#include "core/base/error.h"
#include "core/nn/layers.h"
#include "core/nn/units.h"
#include "parallel/agreement.h"
#include "parallel/batch.h"
#include "parallel/mode.h"
#include "parallel/modes/replica.h"
#include "parallel/modes/shard.h"
#include "parallel/step_clock.h"

namespace howmany {
namespace {

// How many units may hold whole gradients while these are exchanged.
constexpr size_t kMostLeaving = 2;

// A unit that calls back around its forward and backward.
class Watched final : public Layer {
 public:
  struct Hooks {
    std::function<void()> before_forward, after_forward, before_backward, after_backward;
  };
  Watched(LayerPtr layer, Hooks hooks) : layer_(std::move(layer)), hooks_(std::move(hooks)) {}

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
    for (Shard& shard : shards_) shard.change_values();
    if (level_ < 3)
      for (Shard& shard : shards_) shard.gather();
    Tensor loss = replica_.step(mine);
    Work summed = comm_.all_reduce_async(loss);
    while (!leaving_.empty()) wait_for_oldest();
    const auto scope = clock_.exchanging();
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
    for (Shard& shard : shards_) parts.push_back(&shard.part());
    return parts;
  }

  std::map<std::string, Tensor> gradients() override {
    std::map<std::string, Tensor> grads;
    for (Shard& shard : shards_) shard.gather_grads(grads);
    return grads;
  }

  std::map<std::string, Tensor> gather() override {
    std::map<std::string, Tensor> values;
    for (Shard& shard : shards_) {
      shard.change_values();
      shard.wait_values();
      for (const Param* p : shard.params()) values[p->name] = p->value.clone();
      shard.release_values();
    }
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
    ModelSpec model = std::move(args.model);
    Layer* const inner = model.layer->inner_chain();
    const std::vector<Unit> all = units(inner == nullptr ? *model.layer : *inner);
    const std::span<const Unit> rest = std::span(all).subspan(inner == nullptr ? 0 : 1);
    std::vector<LayerPtr> parts;
    if (inner != nullptr) parts.push_back(shard(std::span(all).first(1), args.dtype));
    for (const std::span<const Unit> group : groups_of(rest)) {
      LayerPtr layer = shard(group, args.dtype);
      if (recompute_) layer = layers::recomputed(std::move(layer));
      parts.push_back(std::make_unique<Watched>(std::move(layer), hooks_of(shards_.size() - 1)));
    }
    LayerPtr chain = layers::sequential(std::move(parts));
    // The first unit is used before and after the others, so it stays whole for the step.
    model.layer = inner == nullptr ? std::move(chain)
                                   : std::make_unique<Watched>(model.layer->over(std::move(chain)),
                                                               hooks_of(0, true));
    return model;
  }

  LayerPtr shard(std::span<const Unit> group, Dtype dtype) {
    LayerPtr layer = part(group);
    materialize(*layer, {.device = device_, .dtype = dtype, .seed = seed_});
    HM_REQUIRE(!trainable_params(*layer).empty(), "[sharded] the model has no parameters");
    shards_.emplace_back(*layer, comm_, level_);
    return layer;
  }

  Watched::Hooks hooks_of(size_t i, bool stays = false) {
    return {.before_forward =
                [this, i] {
                  wait_for_values(i);
                  if (i + 1 < shards_.size()) shards_[i + 1].gather();
                },
            // Backward begins with the last unit.
            .after_forward =
                [this, i, stays] {
                  if (i + 1 < shards_.size() && !stays) shards_[i].release_values();
                },
            .before_backward =
                [this, i] {
                  wait_for_values(i);
                  if (i > 0) shards_[i - 1].gather();
                  while (std::ranges::find(leaving_, &shards_[i]) != leaving_.end())
                    wait_for_oldest();
                  shards_[i].begin_grads(replica_.micro_batch().index > 0);
                },
            .after_backward =
                [this, i] {
                  shards_[i].release_values();
                  if (!shards_[i].exchanges(replica_.micro_batch().last())) return;
                  if (leaving_.size() == kMostLeaving) wait_for_oldest();
                  shards_[i].reduce();
                  leaving_.push_back(&shards_[i]);
                }};
  }

  void wait_for_values(size_t i) {
    const auto scope = clock_.exchanging();
    shards_[i].wait_values();
  }

  void wait_for_oldest() {
    const auto scope = clock_.exchanging();
    leaving_.front()->wait_grads();
    leaving_.pop_front();
  }

  Comm& comm_;
  const int level_;
  const bool recompute_;
  const Device device_;
  uint64_t seed_ = 0;
  std::deque<Shard> shards_;  // in forward order; the hooks refer to them
  Replica replica_;
  std::optional<SharedStatistics> statistics_;
  std::deque<Shard*> leaving_;  // their gradients are being exchanged; the oldest first
  StepClock clock_;
};

}  // namespace

std::unique_ptr<Mode> modes::sharded(ModeArgs args) {
  return std::make_unique<Sharded>(std::move(args));
}

}  // namespace howmany
