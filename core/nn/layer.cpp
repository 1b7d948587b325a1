// SPDX-License-Identifier: Apache-2.0
#include "core/nn/layer.h"

#include "core/backends/backend.h"
#include "core/base/error.h"
#include "core/tensor/rng.h"

namespace howmany {

namespace {

// Values are bitwise equal on any device. A GPU generates uniform f32 values itself. Its logarithms
// and cosines differ from the host's, so normal values are generated on the host and copied.
Tensor initial_value(const Param& param, const Materialize& how) {
  const double value = param.init.value;
  if (param.init.kind == Init::constant)
    return Tensor::full(param.shape, value, how.dtype, how.device);
  const bool there = how.device.type == DeviceType::meta ||
                     (param.init.kind == Init::uniform && how.dtype == Dtype::f32);
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

void materialize_named(Layer& layer, Materialize how) {
  how.device = layer.own_device().value_or(how.device);
  for (Param& p : layer.own_params()) materialize(p, how);
  for (const auto& child : layer.children()) materialize_named(*child.layer, how);
}

}  // namespace

std::string join_path(const std::string& path, const std::string& name) {
  if (path.empty()) return name;
  return name.empty() ? path : path + "." + name;
}

void for_each_layer(Layer& layer, const VisitLayer& visit, const std::string& path) {
  visit(layer, path);
  for (const auto& child : layer.children())
    for_each_layer(*child.layer, visit, join_path(path, child.name));
}

std::vector<Param*> all_params(Layer& layer) {
  std::vector<Param*> params;
  for_each_layer(layer, [&](Layer& l, const std::string&) {
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

Shape replace_last(const char* layer, const Shape& x, int64_t from, int64_t to) {
  HM_REQUIRE(x.rank() >= 2 && x[-1] == from, "[{}] x has shape {}, expected [..,{}]", layer,
             x.str(), from);
  std::vector<int64_t> extents(x.extents().begin(), x.extents().end());
  extents.back() = to;
  return Shape(extents);
}

double step_flop(Layer& layer, const Shape& x) {
  Layer* first = &layer;
  while (!first->children().empty()) first = first->children().front().layer;
  return 3 * layer.forward_flop(x) - first->forward_flop(x);
}

void name_params(Layer& layer) {
  for_each_layer(layer, [&](Layer& l, const std::string& path) {
    l.place(path);
    for (Param& p : l.own_params()) p.name = join_path(path, p.name.substr(p.name.rfind('.') + 1));
  });
}

void materialize(Layer& layer, const Materialize& how) {
  name_params(layer);
  materialize_named(layer, how);
}

}  // namespace howmany
