// SPDX-License-Identifier: Apache-2.0
#include "parallel/modes/replica.h"

#include "core/backends/selection.h"
#include "core/nn/units.h"
#include "core/ops/ops.h"
#include "core/profile/range.h"
#include "core/tensor/id_range.h"
#include "parallel/sync/batch.h"

namespace howmany {
namespace {

// The loss is f64. On a GPU, only the backend of the activations adds f64.
const Backend& backend_of_loss(const LossResult& loss) {
  return backend_for(loss.total.device().type == DeviceType::cuda ? loss.dy : loss.total);
}

// Ids keep their known range, so that a check of it needs no copy from a GPU.
Tensor rows_of(const Tensor& t, int64_t begin, int64_t end) {
  Tensor rows = t.rows(begin, end);
  if (const auto range = known_range(t)) remember_range(rows, *range);
  return rows;
}

}  // namespace

ModelSpec model_of(ModeArgs& args) {
  if (args.options.recompute) args.model.layer = recomputing(*args.model.layer);
  return std::move(args.model);
}

Replica::Replica(ModelSpec model, Device device, Dtype dtype, uint64_t seed)
    : model_(std::move(model)), device_(device), dtype_(dtype), seed_(seed) {
  const DeviceScope on(device_);
  materialize(*model_.layer, {.device = device_, .dtype = dtype_, .seed = seed_});
  params_ = trainable_params(*model_.layer);
}

Replica::Replica(ModelSpec model, Device device, Dtype dtype, Materialized)
    : model_(std::move(model)),
      device_(device),
      dtype_(dtype),
      seed_(0),
      params_(trainable_params(*model_.layer)) {}

Replica::Flop Replica::flop_of(const Shape& x) {
  const auto known = std::ranges::find(flops_, x, &Flop::x);
  if (known != flops_.end()) return *known;
  flops_.push_back({x, static_cast<uint64_t>(model_.layer->forward_flop(x)),
                    static_cast<uint64_t>(howmany::step_flop(*model_.layer, x))});
  return flops_.back();
}

Tensor Replica::step(const Batch& batch, const Tape::Hook& on_final) {
  check_batch(batch);
  const DeviceScope on(device_);
  const StepInput in{placed(batch.x, dtype_, device_), placed(batch.y, dtype_, device_),
                     batch.global_rows, batch.first_row};
  const Range whole(Category::step, "step", step_flop(in.x.shape()));
  StepOutcome outcome = run(in, on_final);
  ++step_;
  return outcome.loss;
}

StepOutcome Replica::run(const StepInput& in, const Tape::Hook& on_final) {
  zero_grads(params_);
  StepOutcome sum;
  const int count = micro_batches(in.global_rows);
  for (micro_batch_ = {0, count}; micro_batch_.index < count; ++micro_batch_.index) {
    const Share mine{micro_batch_.index, count};
    const int64_t rows = in.x.shape()[0], begin = mine.begin(rows), end = mine.end(rows);
    add_micro_batch({rows_of(in.x, begin, end), rows_of(in.target, begin, end), in.global_rows,
                     in.first_row + begin, in.seed_at},
                    micro_batch_.last() ? on_final : Tape::Hook(), sum);
  }
  return sum;
}

void Replica::add_micro_batch(const StepInput& in, const Tape::Hook& on_final, StepOutcome& sum) {
  const Flop flop = flop_of(in.x.shape());
  Tape tape({.training = true,
             .seed = seed_,
             .step = step_,
             .first_row = in.first_row,
             .seed_at = in.seed_at,
             .sum_statistics = sum_statistics_});
  const Tensor x = ops::stored(in.x);
  tape.set_input(x);
  LossResult loss;
  {
    const Range range(Category::step, "forward", flop.forward);
    const Tensor y = model_.layer->forward(x, tape);
    loss = logits_ ? compute_loss(*logits_, y, in.target, in.global_rows)
                   : compute_loss(model_.loss, y, in.target, in.global_rows);
  }
  if (sum.loss)
    backend_of_loss(loss).axpy(1, loss.total, sum.loss);
  else
    sum.loss = loss.total;
  const Range range(Category::step, "backward", flop.step - flop.forward);
  tape.on_final(on_final);
  model_.layer->backward(loss.dy, tape);
  sum.drew |= tape.drew();
}

std::map<std::string, Tensor> Replica::values() const {
  std::map<std::string, Tensor> values;
  for (const Param* p : all_params(*model_.layer)) values[p->name] = p->value.clone();
  return values;
}

SharedStatistics::SharedStatistics(Comm& comm, Replica& replica, bool gpu_waits)
    : comm_(comm.split(0, comm.rank())) {
  replica.set_sum_statistics([this, gpu_waits](Tensor t) {
    if (!gpu_waits) return comm_->all_reduce(std::move(t));
    last_ = comm_->all_reduce_async(std::move(t));
    last_.wait();
  });
}

}  // namespace howmany
