#include "parallel/modes/replica.h"

#include "core/profile/range.h"
#include "parallel/batch.h"

namespace howmany {

Replica::Replica(ModelSpec model, Device device, Dtype dtype, uint64_t seed)
    : model_(std::move(model)), device_(device), dtype_(dtype), seed_(seed) {
  const DeviceScope on(device_);
  materialize(*model_.layer, {.device = device_, .dtype = dtype_, .seed = seed_});
  params_ = trainable_params(*model_.layer);
}

double Replica::step(const Batch& batch, const Tape::Hook& on_final) {
  check_batch(batch);
  const DeviceScope on(device_);
  const Tensor x = placed(batch.x, dtype_, device_), target = placed(batch.y, dtype_, device_);
  if (!(x.shape() == flop_shape_)) {
    forward_flop_ = model_.layer->forward_flop(x.shape());
    flop_shape_ = x.shape();
  }
  const auto flop = static_cast<uint64_t>(forward_flop_);
  const Range whole(Category::step, "step", 3 * flop);
  zero_grads(params_);
  Tape tape({.training = true,
             .seed = seed_,
             .step = step_++,
             .first_row = batch.first_row,
             .sum_statistics = sum_statistics_});
  tape.set_input(x);
  LossResult loss;
  {
    const Range range(Category::step, "forward", flop);
    const Tensor y = model_.layer->forward(x, tape);
    loss = compute_loss(model_.loss, y, target, batch.global_rows);
  }
  const Range range(Category::step, "backward", 2 * flop);
  tape.on_final(on_final);
  model_.layer->backward(loss.dy, tape);
  return loss.value();
}

std::map<std::string, Tensor> Replica::values() const {
  std::map<std::string, Tensor> values;
  for (const Param* p : all_params(*model_.layer)) values[p->name] = p->value.clone();
  return values;
}

}  // namespace howmany
