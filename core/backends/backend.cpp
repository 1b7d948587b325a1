#include "core/backends/backend.h"

#include <algorithm>

#include "core/backends/backend_list.h"
#include "core/base/error.h"
#include "core/base/text/names.h"

namespace howmany {
namespace {

using Backends = std::vector<std::unique_ptr<Backend>>;

const Backends& all_backends() {
  static const Backends built = [] {
    Backends list;
#define X(name, what) list.push_back(backends::name());
    HM_BACKENDS(X)
#undef X
    return list;
  }();
  return built;
}

thread_local const Backend* chosen_backend = nullptr;

// Returns the last suitable backend of the list, which is ordered from slow to fast.
const Backend& best_backend(DeviceType device, Dtype dtype) {
  const Backends& list = all_backends();
  const auto found = std::find_if(list.rbegin(), list.rend(), [&](const auto& b) {
    return b->device_type() == device &&
           (b->supports(dtype) || (b->name() == "reference" && dtype != Dtype::bf16));
  });
  HM_REQUIRE(found != list.rend(), "[backend] none built in computes {} on {} devices",
             name_of(dtype), device == DeviceType::cpu ? "cpu" : "cuda");
  return **found;
}

}  // namespace

std::string_view name_of(Activation act) {
  switch (act) {
    case Activation::none:
      return "none";
    case Activation::relu:
      return "relu";
    case Activation::gelu:
      return "gelu";
    case Activation::tanh:
      return "tanh";
  }
  return "?";
}

std::vector<std::string_view> backend_names() {
  std::vector<std::string_view> names;
  for (const auto& b : all_backends()) names.push_back(b->name());
  return names;
}

const Backend& backend_named(std::string_view name) {
  for (const auto& b : all_backends())
    if (b->name() == name) return *b;
  throw std::invalid_argument("[backend] " + unknown_name("backend", name, backend_names()));
}

const Backend& backend_for(const Tensor& t) {
  const DeviceType device = t.device().type;
  if (t.dtype() == Dtype::f64 && device == DeviceType::cpu) return *all_backends().front();
  if (chosen_backend != nullptr && chosen_backend->device_type() == device) return *chosen_backend;
  return best_backend(device, t.dtype());
}

BackendScope::BackendScope(const Backend& backend) : outer_(chosen_backend) {
  chosen_backend = &backend;
}
BackendScope::~BackendScope() { chosen_backend = outer_; }

// The default of every operation that a backend does not override.
#define HM_UNSUPPORTED(op) \
  { throw Error(fmt::format("[{}] {} is not supported", name(), op)); }

void Backend::matmul(const Tensor&, bool, const Tensor&, bool, bool, Tensor&) const
    HM_UNSUPPORTED("matmul") void Backend::linear(const Tensor&, const Tensor&, const Tensor&,
                                                  Activation, Tensor&) const
    HM_UNSUPPORTED("linear") void Backend::linear_backward(const Tensor&, const Tensor&,
                                                           const Tensor&, const Tensor&, Activation,
                                                           Tensor&, GradOut&, GradOut&) const
    HM_UNSUPPORTED("linear_backward") void Backend::conv2d(const Tensor&, const Tensor&,
                                                           const Tensor&, Window, Tensor&) const
    HM_UNSUPPORTED("conv2d") void Backend::conv2d_backward(const Tensor&, const Tensor&,
                                                           const Tensor&, Window, Tensor&, GradOut&,
                                                           GradOut&) const
    HM_UNSUPPORTED("conv2d_backward") void Backend::activation(const Tensor&, Activation,
                                                               Tensor&) const
    HM_UNSUPPORTED("activation") void Backend::activation_backward(const Tensor&, const Tensor&,
                                                                   Activation, Tensor&) const
    HM_UNSUPPORTED("activation_backward") void Backend::add(const Tensor&, const Tensor&,
                                                            Activation, Tensor&) const
    HM_UNSUPPORTED("add") void Backend::batchnorm(const Tensor&, const Tensor&, const Tensor&,
                                                  Activation, BatchNormState&, Tensor&, Tensor&,
                                                  Tensor&) const
    HM_UNSUPPORTED("batchnorm") void Backend::batchnorm_inference(const Tensor&, const Tensor&,
                                                                  const Tensor&, Activation,
                                                                  const BatchNormState&,
                                                                  Tensor&) const
    HM_UNSUPPORTED("batchnorm_inference") void Backend::batchnorm_moments(const Tensor&, Tensor&,
                                                                          Tensor&) const
    HM_UNSUPPORTED("batchnorm_moments") void Backend::batchnorm_backward_sums(
        const BatchNormBackward&, Tensor&, Tensor&) const
    HM_UNSUPPORTED("batchnorm_backward_sums") void Backend::batchnorm_backward_input(
        const BatchNormBackward&, const Tensor&, const Tensor&, double, Tensor&) const
    HM_UNSUPPORTED("batchnorm_backward_input") void Backend::layernorm(const Tensor&, const Tensor&,
                                                                       const Tensor&, double,
                                                                       Tensor&, Tensor&,
                                                                       Tensor&) const
    HM_UNSUPPORTED("layernorm") void Backend::layernorm_backward(const Tensor&, const Tensor&,
                                                                 const Tensor&, const Tensor&,
                                                                 const Tensor&, Tensor&, GradOut&,
                                                                 GradOut&) const
    HM_UNSUPPORTED("layernorm_backward") void Backend::attention(const Tensor&, Heads, Tensor&,
                                                                 Tensor&) const
    HM_UNSUPPORTED("attention") void Backend::attention_backward(const Tensor&, const Tensor&,
                                                                 const Tensor&, const Tensor&,
                                                                 Heads, Tensor&) const
    HM_UNSUPPORTED("attention_backward") void Backend::max_pool(const Tensor&, Window, Tensor&,
                                                                Tensor&) const
    HM_UNSUPPORTED("max_pool") void Backend::max_pool_backward(const Tensor&, const Tensor&, Window,
                                                               Tensor&) const
    HM_UNSUPPORTED("max_pool_backward") void Backend::avg_pool(const Tensor&, Window, Tensor&) const
    HM_UNSUPPORTED("avg_pool") void Backend::avg_pool_backward(const Tensor&, Window, Tensor&) const
    HM_UNSUPPORTED("avg_pool_backward") void Backend::embedding(const Tensor&, const Tensor&,
                                                                Tensor&) const
    HM_UNSUPPORTED("embedding") void Backend::embedding_backward(const Tensor&, const Tensor&,
                                                                 GradOut&) const
    HM_UNSUPPORTED("embedding_backward") void Backend::dropout(const Tensor&, double, DropoutKey,
                                                               Tensor&) const
    HM_UNSUPPORTED("dropout") Tensor Backend::softmax_cross_entropy(const Tensor&, const Tensor&,
                                                                    double, Tensor&) const
    HM_UNSUPPORTED("softmax_cross_entropy") Tensor Backend::mse(const Tensor&, const Tensor&,
                                                                double, Tensor&) const
    HM_UNSUPPORTED("mse") void Backend::sgd(std::span<SgdParam>, const SgdArgs&) const
    HM_UNSUPPORTED("sgd") void Backend::adam(std::span<AdamParam>, const AdamArgs&) const
    HM_UNSUPPORTED("adam") void Backend::axpy(double, const Tensor&, Tensor&) const
    HM_UNSUPPORTED("axpy")
#undef HM_UNSUPPORTED

}  // namespace howmany
