#include "core/nn/layer.h"

#include <functional>

#include "core/backends/backend.h"
#include "core/base/error.h"
#include "core/tensor/rng.h"

namespace howmany {

void Tape::push(Tensor kept) { stack_.push_back(std::move(kept)); }

Tensor Tape::pop() {
  HM_REQUIRE(!stack_.empty(), "[tape] backward asks for more than forward kept");
  Tensor kept = std::move(stack_.back());
  stack_.pop_back();
  return kept;
}

void Tape::push_shape(const Shape& shape) {
  const auto extents = shape.extents();
  push(Tensor::from(std::vector<int64_t>(extents.begin(), extents.end()), Shape{shape.rank()}));
}

Shape Tape::pop_shape() { return Shape(pop().values<int64_t>()); }

DropoutKey Tape::draw(uint64_t stream, int64_t row_numel) {
  drew_ = true;
  const uint64_t seed = options_.seed_at != nullptr ? 0 : step_seed(options_.seed, options_.step);
  return {seed, stream, options_.first_row * row_numel, options_.seed_at};
}

uint64_t step_seed(uint64_t seed, int64_t step) {
  const uint64_t high = Rng(seed).bits(2 * static_cast<uint64_t>(step));
  const uint64_t low = Rng(seed).bits(2 * static_cast<uint64_t>(step) + 1);
  return high << 32 | low;
}

void Tape::done(Param& param) {
  param.has_grad = true;
  HM_ASSERT(uses_[&param] > 0);
  if (--uses_[&param] == 0 && hook_) hook_(param);
}

namespace {

using Visit = std::function<void(Layer&, const std::string& path)>;

std::string join(const std::string& path, const std::string& name) {
  if (path.empty()) return name;
  return name.empty() ? path : path + "." + name;
}

void walk(Layer& layer, const std::string& path, const Visit& visit) {
  visit(layer, path);
  for (const auto& child : layer.children()) walk(*child.layer, join(path, child.name), visit);
}

// Values are bitwise equal on any device. A GPU generates uniform f32 values itself. Its logarithms
// and cosines differ from the host's, so normal values are generated on the host and copied.
Tensor initial_value(const Param& param, const Materialize& how) {
  const double value = param.init.value;
  if (param.init.kind == Init::constant)
    return Tensor::full(param.shape, value, how.dtype, how.device);
  const bool there = param.init.kind == Init::uniform && how.dtype == Dtype::f32;
  Tensor t = Tensor::empty(param.shape, how.dtype, there ? how.device : Device{});
  const Rng rng(how.seed, stream_of(param.name));
  if (param.init.kind == Init::uniform)
    fill_uniform(t, -value, value, rng);
  else
    fill_normal(t, 0, value, rng);
  return t.to(how.device);
}

void materialize(Param& p, const Materialize& how) {
  p.value = initial_value(p, how);
  p.grad = p.trainable ? Tensor::zeros(p.shape, how.dtype, how.device) : Tensor();
  p.has_grad = false;
}

}  // namespace

std::vector<Param*> all_params(Layer& layer) {
  std::vector<Param*> params;
  walk(layer, "", [&](Layer& l, const std::string&) {
    for (Param& p : l.own_params()) params.push_back(&p);
  });
  return params;
}

std::vector<Param*> trainable_params(Layer& layer) {
  std::vector<Param*> params = all_params(layer);
  std::erase_if(params, [](const Param* p) { return !p->trainable; });
  return params;
}

int64_t parameter_count(Layer& layer) {
  int64_t count = 0;
  for (const Param* p : trainable_params(layer)) count += p->shape.numel();
  return count;
}

void name_params(Layer& layer) {
  walk(layer, "", [&](Layer& l, const std::string& path) {
    l.place(path);
    for (Param& p : l.own_params()) p.name = join(path, p.name.substr(p.name.rfind('.') + 1));
  });
}

void materialize(Layer& layer, const Materialize& how) {
  name_params(layer);
  for (Param* p : all_params(layer)) materialize(*p, how);
}

void zero_grads(std::span<Param* const> params) {
  for (Param* p : params) p->has_grad = false;
}

GradOut grad_out(Param& param) { return {param.grad, param.has_grad}; }

}  // namespace howmany
