// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

#include "core/base/error.h"
#include "core/nn/cut.h"
#include "core/nn/layers.h"
#include "core/nn/units.h"
#include "parallel/agreement.h"
#include "parallel/batch.h"
#include "parallel/mesh.h"
#include "parallel/mode.h"
#include "parallel/modes/replica.h"
#include "parallel/step_clock.h"

namespace howmany {
namespace {

// Copies between a part and its place in the whole, on the CPU.
class PartCopy {
 public:
  PartCopy(const CutParam& param, int index, int count, Dtype dtype) {
    const int64_t element = size_of(dtype) * param.inner;
    int64_t at = 0;
    for (int64_t i = 0; i < param.outer; ++i)
      for (const int64_t block : param.divided) {
        const int64_t begin = begin_of_part(block, index, count),
                      end = begin_of_part(block, index + 1, count);
        pieces_.push_back({static_cast<size_t>((at + begin) * element),
                           static_cast<size_t>((end - begin) * element)});
        numel_ += (end - begin) * param.inner;
        at += block;
      }
  }

  int64_t numel() const { return numel_; }
  void from_whole(const std::byte* whole, std::byte* part) const {
    for (const Piece& piece : pieces_) {
      std::memcpy(part, whole + piece.at, piece.bytes);
      part += piece.bytes;
    }
  }
  void to_whole(const std::byte* part, std::byte* whole) const {
    for (const Piece& piece : pieces_) {
      std::memcpy(whole + piece.at, part, piece.bytes);
      part += piece.bytes;
    }
  }

 private:
  struct Piece {
    size_t at, bytes;  // of the whole
  };
  std::vector<Piece> pieces_;
  int64_t numel_ = 0;
};

const std::byte* read(const Tensor& t) { return static_cast<const std::byte*>(t.raw()); }
std::byte* write(Tensor& t) { return static_cast<std::byte*>(t.mutable_raw()); }

// Each of `ways` ranks computes a part of every pair of linear layers, and of the tables and logits
// of tokens, on the same rows (cut.h). Groups of `ways` ranks divide the batch, as in ddp. Other
// layers are whole on each rank.
class TensorParallel : public Mode {
 public:
  explicit TensorParallel(ModeArgs args)
      : world_(*args.comm),
        mesh_(world_, shape_of(args)),
        device_(args.devices.empty() ? Device{} : args.devices[0]),
        clock_(device_),
        replica_(divided(args), device_, args.dtype, Replica::Materialized{}) {
    replica_.accumulate(args.options.accumulate, mesh_.shape().data);
    replica_.set_seed(seed_);
    if (divided_logits_)
      replica_.set_logits({.first = begin_of_part(replica_.model().classes, mesh_.at().tensor,
                                                  mesh_.shape().tensor),
                           .classes = replica_.model().classes,
                           .gather = [this](Tensor part) { return gathered(std::move(part)); }});
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
    for (const Param* p : replica_.params()) grads[p->name] = whole(*p, p->grad);
    return grads;
  }

  std::map<std::string, Tensor> gather() override {
    std::map<std::string, Tensor> values;
    for (const Param* p : replica_.params_and_buffers()) values[p->name] = whole(*p, p->value);
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

  // The ranks sum activations, which a GPU may store in bf16 and a CPU does not.
  void refuse_mix() {
    Tensor gpus = Tensor::full({1}, device_.type == DeviceType::cuda ? 1 : 0, Dtype::f64);
    mesh_.tensor().all_reduce(gpus);
    const int count = static_cast<int>(gpus.item()), all = mesh_.shape().tensor;
    HM_REQUIRE(count == 0 || count == all,
               "[tensor] {} of {} ranks compute on GPUs: take devices of one type", count, all);
  }

  ModelSpec divided(ModeArgs& args) {
    refuse_mix();
    const DeviceScope on(device_);
    seed_ = of_rank_0(world_, args.seed);
    ModelSpec model = std::move(args.model);
    name_params(*model.layer);
    for (const Param* p : all_params(*model.layer)) shapes_[p->name] = p->shape;
    CutModel cut = cut_chains(*model.layer,
                              {.index = mesh_.at().tensor,
                               .count = mesh_.shape().tensor,
                               .sum = [this](Tensor t) { sum(std::move(t)); }},
                              makes_logits_of_tokens(model));
    divided_logits_ = cut.logits;
    for (const CutParam& param : cut.params) cut_[param.path] = param;
    if (args.options.recompute) cut.layer = recomputing(*cut.layer);
    materialize(*cut.layer, {.device = device_, .dtype = args.dtype, .seed = seed_});
    if (device_.type != DeviceType::meta) take_parts(*model.layer, *cut.layer, args.dtype);
    model.layer = std::move(cut.layer);
    return model;
  }

  // Initial values are those of the whole model, of which one layer is here at a time.
  void take_parts(Layer& whole, Layer& divided, Dtype dtype) {
    std::map<std::string, Param*> parts;
    for (Param* p : all_params(divided)) parts[p->name] = p;
    for_each_layer(whole, [&](Layer& layer, const std::string& path) {
      const bool any = std::ranges::any_of(layer.own_params(),
                                           [&](const Param& p) { return cut_.contains(p.name); });
      if (!any) return;
      std::vector<layers::Named> one;
      one.push_back({path, layer.clone()});
      const LayerPtr alone = layers::sequential(std::move(one));
      materialize(*alone, {.dtype = dtype, .seed = seed_});
      for (const Param* p : all_params(*alone))
        if (const auto found = cut_.find(p->name); found != cut_.end())
          parts.at(p->name)->value.copy_from(own_part(found->second, p->value));
    });
  }

  Tensor own_part(const CutParam& param, const Tensor& whole) const {
    const PartCopy copy(param, mesh_.at().tensor, mesh_.shape().tensor, whole.dtype());
    Tensor part = Tensor::empty({copy.numel()}, whole.dtype());
    copy.from_whole(read(whole), write(part));
    return part;
  }

  // Returns a copy of the value or gradient, joined over the ranks. Collective.
  Tensor whole(const Param& p, const Tensor& value) {
    const auto found = cut_.find(p.name);
    if (found == cut_.end()) return value.clone();
    const int count = mesh_.shape().tensor;
    int64_t most = 0;
    for (int i = 0; i < count; ++i)
      most = std::max(most, PartCopy(found->second, i, count, value.dtype()).numel());
    Tensor mine = Tensor::zeros({most}, value.dtype());
    mine.flat(0, value.numel()).copy_from(value.view({value.numel()}));
    const Tensor all = Tensor::empty({most * count}, value.dtype());
    mesh_.tensor().all_gather(mine, all);
    Tensor joined = Tensor::empty(shapes_.at(p.name), value.dtype());
    for (int i = 0; i < count; ++i)
      PartCopy(found->second, i, count, value.dtype())
          .to_whole(read(all.flat(i * most, (i + 1) * most)), write(joined));
    return joined.to(value.device());
  }

  bool gpu_waits() {
    return device_.type == DeviceType::cuda && device_ == mesh_.tensor().native_device();
  }

  // Returns the parts of all ranks.
  Tensor gathered(Tensor part) {
    const auto scope = clock_.exchanging();
    const Shape& shape = part.shape();
    Tensor all =
        Tensor::empty({mesh_.tensor().size(), shape[0], shape[1]}, part.dtype(), part.device());
    if (!gpu_waits()) {
      mesh_.tensor().all_gather(part, all);
      return all;
    }
    last_ = mesh_.tensor().all_gather_async(std::move(part), all);
    last_.wait();
    return all;
  }

  void sum(Tensor t) {
    const auto scope = clock_.exchanging();
    if (!gpu_waits()) return mesh_.tensor().all_reduce(std::move(t));
    last_ = mesh_.tensor().all_reduce_async(std::move(t));
    last_.wait();
  }

  Comm& world_;
  Mesh mesh_;
  const Device device_;
  StepClock clock_;
  uint64_t seed_ = 0;
  std::map<std::string, CutParam> cut_;  // by path
  std::map<std::string, Shape> shapes_;  // of the whole parameters
  bool divided_logits_ = false;
  Work last_;  // the last sum that only the GPU waited for
  Replica replica_;
  std::unique_ptr<GradSync> sync_;  // over the groups of ranks
  std::optional<SharedStatistics> statistics_;
};

}  // namespace

std::unique_ptr<Mode> modes::tensor(ModeArgs args) {
  return std::make_unique<TensorParallel>(std::move(args));
}

}  // namespace howmany
