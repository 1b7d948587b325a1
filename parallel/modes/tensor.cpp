// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <optional>

#include "core/base/error.h"
#include "core/nn/cut.h"
#include "core/nn/units.h"
#include "parallel/modes/mesh.h"
#include "parallel/modes/mode.h"
#include "parallel/modes/replica.h"
#include "parallel/modes/tensor_parts.h"
#include "parallel/sync/agreement.h"
#include "parallel/sync/batch.h"
#include "parallel/sync/step_clock.h"

namespace howmany {
namespace {

// [N,T,K] with a row per sample.
Tensor samples(const Tensor& t) { return t.view({t.shape()[0], t.numel() / t.shape()[0]}); }

// Returns a copy of the part [N,T/ranks,K] of one rank.
Tensor part_of(const Tensor& whole, int rank, int ranks) {
  const Shape shape = part_of_positions(whole.shape(), ranks);
  Tensor part = Tensor::empty(shape, whole.dtype(), whole.device());
  if (part.numel() == 0) return part;
  const int64_t columns = part.numel() / shape[0];
  Tensor rows = samples(part);
  rows.copy_columns(0, samples(whole), rank * columns, columns);
  return part;
}

// Collectives need the part of each rank in one piece: [N,T,K] -> [ranks,N,T/ranks,K], and back. A
// view if N is 1, else a copy.
Tensor in_parts(const Tensor& whole, int ranks) {
  const Shape part = part_of_positions(whole.shape(), ranks);
  const Shape all{ranks, part[0], part[1], part[2]};
  if (part[0] <= 1) return whole.view(all);
  const Tensor parts = Tensor::empty(all, whole.dtype(), whole.device());
  const int64_t columns = part[1] * part[2];
  for (int rank = 0; rank < ranks; ++rank) {
    Tensor to = parts.rows(rank, rank + 1).view({part[0], columns});
    to.copy_columns(0, samples(whole), rank * columns, columns);
  }
  return parts;
}

Tensor from_parts(const Tensor& parts) {
  const Shape& all = parts.shape();
  const Shape shape{all[1], all[0] * all[2], all[3]};
  if (all[1] <= 1) return parts.view(shape);
  Tensor whole = Tensor::empty(shape, parts.dtype(), parts.device());
  const int64_t columns = all[2] * all[3];
  Tensor to = samples(whole);
  for (int64_t rank = 0; rank < all[0]; ++rank)
    to.copy_columns(rank * columns, parts.rows(rank, rank + 1).view({all[1], columns}), 0, columns);
  return whole;
}

// Each of `ways` ranks computes a part of every pair of linear layers, and of the tables and logits
// of tokens, on the same rows (cut.h). Groups of `ways` ranks divide the batch, as in ddp. Other
// layers are whole on each rank. With sequence=1, ranks also divide the positions between the
// pairs, and sum the gradients of the whole parameters there after backward.
class TensorParallel : public Mode {
 public:
  explicit TensorParallel(ModeArgs args)
      : world_(*args.comm),
        mesh_(world_, shape_of(args)),
        device_(args.devices.empty() ? Device{} : args.devices[0]),
        clock_(device_),
        whole_(std::move(args.model)),
        parts_(
            whole_, mesh_.tensor(), device_, [this](const Tensor& t) { sum(t); },
            args.options.sequence ? std::optional(positions()) : std::nullopt),
        replica_(divided(args), device_, args.dtype, Replica::Materialized{}) {
    replica_.accumulate(args.options.accumulate, mesh_.shape().data);
    replica_.set_seed(seed_);
    if (auto logits = parts_.logits([this](const Tensor& part) { return gathered(part); }))
      replica_.set_logits(std::move(*logits));
    of_positions_ = parts_.of_positions(replica_.params());
    if (mesh_.shape().data == 1) return;
    sync_ = make_grad_sync(mesh_.data(), replica_.params(), args.sync);
    if (args.sync_batchnorm)
      statistics_.emplace(mesh_.data(), replica_,
                          device_.type == DeviceType::cuda && args.sync.bucketed &&
                              device_ == mesh_.data().native_device());
  }

  Share share() const override { return {mesh_.at().data, mesh_.shape().data}; }

  int micro_batches(int64_t global_rows) const override {
    return replica_.micro_batches(global_rows);
  }

  StepLoss step(const Batch& mine) override {
    check_rows("tensor", mine.global_rows, mesh_.shape().data, "groups of ranks");
    clock_.begin();
    Tape::Hook ready;
    if (sync_) ready = [this](Param& p) { sync_->ready(p); };
    const Tensor part = replica_.step(mine, ready);
    const auto scope = clock_.exchanging();
    StepLoss loss = sync_ ? sync_->finish(part) : StepLoss(part);
    sum_of_positions();
    loss.add(last_);
    if (statistics_) loss.add(statistics_->last());
    return loss;
  }

  StepReport report() const override {
    const double waited = clock_.times().exchange;
    return {.exposed_communication_seconds = waited, .waited_seconds = waited};
  }

  std::vector<Param*> params() override { return replica_.params(); }

  std::map<std::string, Tensor> gradients() override {
    std::map<std::string, Tensor> grads;
    for (const Param* p : replica_.params()) grads[p->name] = parts_.whole(*p, p->grad);
    return grads;
  }

  std::map<std::string, Tensor> gather() override {
    std::map<std::string, Tensor> values;
    for (const Param* p : replica_.params_and_buffers())
      values[p->name] = parts_.whole(*p, p->value);
    mesh_.tensor().finish();  // a call that failed in flight spoiled the values
    mesh_.data().finish();
    if (statistics_) statistics_->finish();
    return world_.rank() == 0 ? values : std::map<std::string, Tensor>{};
  }

 private:
  static MeshShape shape_of(const ModeArgs& args) {
    const int world = args.comm->size();
    const int ways = args.options.ways > 0 ? args.options.ways : world;
    HM_REQUIRE(world % ways == 0, "[tensor] {} ranks do not divide into groups of ways={}: take {}",
               world, ways, nearest_divisor(world, ways));
    return {.data = world / ways, .tensor = ways};
  }

  ModelSpec divided(const ModeArgs& args) {
    const DeviceScope on(device_);
    seed_ = of_rank_0(world_, args.seed);
    ModelSpec model = parts_.take_model();
    if (args.options.recompute) model.layer = recomputing(*model.layer);
    materialize(*model.layer, {.device = device_, .dtype = args.dtype, .seed = seed_});
    if (device_.type != DeviceType::meta)
      parts_.take_initial(all_params(*model.layer), args.dtype, seed_);
    return model;
  }

  bool gpu_waits() {
    return device_.type == DeviceType::cuda && device_ == mesh_.tensor().native_device();
  }

  // Returns the parts of all ranks.
  Tensor gathered(const Tensor& part) {
    Tensor all = parts_.empty_for_all(part);
    gather(part, all);
    return all;
  }
  void gather(const Tensor& part, const Tensor& all) {
    exchange([&](Comm& group) { group.all_gather(part, all); },
             [&](Comm& group) { return group.all_gather_async(part, all); });
  }

  Positions positions() {
    const auto join = [this](const Tensor& part) {
      const Shape& s = part.shape();
      const Tensor all =
          Tensor::empty({mesh_.shape().tensor, s[0], s[1], s[2]}, part.dtype(), part.device());
      gather(part, all);
      return from_parts(all);
    };
    const auto sum_part = [this](const Tensor& whole) {
      const int ways = mesh_.shape().tensor;
      const Tensor part =
          Tensor::empty(part_of_positions(whole.shape(), ways), whole.dtype(), whole.device());
      scatter_sum(in_parts(whole, ways), part);
      return part;
    };
    const auto own = [this](const Tensor& whole) {
      return part_of(whole, mesh_.tensor().rank(), mesh_.shape().tensor);
    };
    return {.join = join, .sum = sum_part, .own = own};
  }
  void scatter_sum(const Tensor& parts, const Tensor& part) {
    exchange([&](Comm& group) { group.reduce_scatter(parts, part); },
             [&](Comm& group) { return group.reduce_scatter_async(parts, part); });
  }

  // In one call.
  void sum_of_positions() {
    if (of_positions_.empty()) return;
    int64_t numel = 0;
    for (const Param* p : of_positions_) numel += p->grad.numel();
    Tensor all = Tensor::empty({numel}, of_positions_[0]->grad.dtype(), device_);
    int64_t at = 0;
    for (const Param* p : of_positions_) {
      all.flat(at, at + p->grad.numel()).copy_from(p->grad);
      at += p->grad.numel();
    }
    sum(all);
    at = 0;
    for (Param* p : of_positions_) {
      p->grad.copy_from(all.flat(at, at + p->grad.numel()));
      at += p->grad.numel();
    }
  }

  void sum(const Tensor& t) {
    exchange([&](Comm& group) { group.all_reduce(t); },
             [&](Comm& group) { return group.all_reduce_async(t); });
  }

  // Makes a call of the group. The GPU waits for it instead of the host if it can.
  template <typename Blocking, typename Async>
  void exchange(const Blocking& blocking, const Async& async) {
    const auto scope = clock_.exchanging();
    if (!gpu_waits()) return blocking(mesh_.tensor());
    last_ = async(mesh_.tensor());
    last_.wait();
  }

  Comm& world_;
  Mesh mesh_;
  const Device device_;
  StepClock clock_;
  uint64_t seed_ = 0;
  Work last_;        // the last sum that only the GPU waited for
  ModelSpec whole_;  // never materialized
  TensorParts parts_;
  Replica replica_;
  std::vector<Param*> of_positions_;
  std::unique_ptr<GradSync> sync_;  // over the groups of ranks
  std::optional<SharedStatistics> statistics_;
};

}  // namespace

std::unique_ptr<Mode> modes::tensor(ModeArgs args) {
  return std::make_unique<TensorParallel>(std::move(args));
}

}  // namespace howmany
