#include "parallel/modes/replica.h"

#include "core/error.h"
#include "core/profile/range.h"

namespace howmany {
namespace {

bool is_float(Dtype dtype) { return dtype == Dtype::f32 || dtype == Dtype::f64; }

void check(const Batch& batch) {
  HM_REQUIRE(batch.x && batch.y && batch.x.shape().rank() > 0 && batch.y.shape().rank() > 0,
             "[step] a batch needs x and y with rows");
  const int64_t rows = batch.x.shape()[0];
  HM_REQUIRE(rows > 0 && rows == batch.y.shape()[0], "[step] rows differ: x {}, y {}",
             batch.x.shape().str(), batch.y.shape().str());
  HM_REQUIRE(batch.first_row >= 0 && batch.first_row + rows <= batch.global_rows,
             "[step] rows [{}, {}) of a global batch of {}", batch.first_row,
             batch.first_row + rows, batch.global_rows);
}

}  // namespace

Replica::Replica(ModelSpec model, Device device, Dtype dtype, uint64_t seed)
    : model_(std::move(model)), device_(device), dtype_(dtype), seed_(seed) {
  const DeviceScope on(device_);
  materialize(*model_.layer, {.device = device_, .dtype = dtype_, .seed = seed_});
  params_ = trainable_params(*model_.layer);
}

Tensor Replica::place(const Tensor& t) const {
  return is_float(t.dtype()) ? t.to(dtype_).to(device_) : t.to(device_);
}

double Replica::step(const Batch& batch, const Tape::Hook& on_final) {
  check(batch);
  const DeviceScope on(device_);
  const Tensor x = place(batch.x), target = place(batch.y);
  if (!(x.shape() == flop_shape_)) {
    forward_flop_ = model_.layer->forward_flop(x.shape());
    flop_shape_ = x.shape();
  }
  const auto flop = static_cast<uint64_t>(forward_flop_);
  const Range whole(Category::step, "step", 3 * flop);
  zero_grads(params_);
  Tape tape({.training = true, .seed = seed_, .step = step_++, .first_row = batch.first_row});
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
  return loss.value;
}

std::map<std::string, Tensor> Replica::values() const {
  std::map<std::string, Tensor> values;
  for (const Param* p : all_params(*model_.layer)) values[p->name] = p->value.clone();
  return values;
}

}  // namespace howmany
