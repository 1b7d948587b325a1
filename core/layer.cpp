#include "core/layer.h"

#include <functional>

#include "core/backend.h"
#include "core/error.h"
#include "core/rng.h"

namespace howmany {

void Tape::push(Tensor kept) { stack_.push_back(std::move(kept)); }

Tensor Tape::pop() {
  HM_REQUIRE(!stack_.empty(), "[tape] backward asks for more than forward kept");
  Tensor kept = std::move(stack_.back());
  stack_.pop_back();
  return kept;
}

void Tape::done(Param& param) {
  param.has_grad = true;
  if (--uses_[&param] == 0 && hook_) hook_(param);
}

namespace {

using Visit = std::function<void(Param&, const std::string& path)>;

std::string join(const std::string& path, const std::string& name) {
  if (path.empty()) return name;
  return name.empty() ? path : path + "." + name;
}

void walk(Layer& layer, const std::string& path, const Visit& visit) {
  for (Param& p : layer.own_params()) visit(p, path);
  for (const auto& child : layer.children()) walk(*child.layer, join(path, child.name), visit);
}

void fill(Param& param, uint64_t seed) {
  if (param.init.kind == Init::uniform)
    fill_uniform(param.value, -param.init.value, param.init.value,
                 Rng(seed, stream_of(param.name)));
  else
    param.value.copy_from(
        Tensor::full(param.shape, param.init.value, param.value.dtype(), param.value.device()));
}

}  // namespace

std::vector<Param*> all_params(Layer& layer) {
  std::vector<Param*> params;
  walk(layer, "", [&](Param& p, const std::string&) { params.push_back(&p); });
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

void materialize(Layer& layer, const Materialize& how) {
  walk(layer, "", [&](Param& p, const std::string& path) {
    const size_t dot = p.name.rfind('.');
    p.name = join(path, dot == std::string::npos ? p.name : p.name.substr(dot + 1));
    p.value = Tensor::empty(p.shape, how.dtype, how.device);
    p.grad = p.trainable ? Tensor::zeros(p.shape, how.dtype, how.device) : Tensor();
    p.has_grad = false;
    fill(p, how.seed);
  });
}

void zero_grads(std::span<Param* const> params) {
  for (Param* p : params) p->has_grad = false;
}

GradOut grad_out(Param& param) { return {param.grad, param.has_grad}; }

}  // namespace howmany
