// SPDX-License-Identifier: Apache-2.0
#include "core/backends/selection.h"

#include <algorithm>

#include "core/backends/backend_list.h"
#include "core/backends/meta.h"
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

const Backend& backend_on(DeviceType device, Dtype dtype) {
  if (dtype == Dtype::f64 && device == DeviceType::cpu) return *all_backends().front();
  if (chosen_backend != nullptr && chosen_backend->device_type() == device) return *chosen_backend;
  if (device == DeviceType::meta) return meta_backend();
  return best_backend(device, dtype);
}

bool computes_in(Precision precision, Device device, std::string_view kernels) {
  if (device.type != DeviceType::cpu) return true;
  const Backend* const named = kernels.empty() ? nullptr : &backend_named(kernels);
  const bool is_chosen = named != nullptr && named->device_type() == device.type;
  return (is_chosen ? *named : best_backend(device.type, Dtype::f32)).computes_in(precision);
}

}  // namespace

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

const Backend& backend_for(const Tensor& t) { return backend_on(t.device().type, t.dtype()); }

Dtype stored_dtype(Dtype dtype, Device device) {
  const Dtype shorter = stored_on_gpus(dtype);
  if (shorter == dtype) return dtype;
  return backend_on(device.type, dtype).supports(shorter) ? shorter : dtype;
}

void check_precision(Precision precision, std::span<const Device> devices,
                     std::string_view kernels) {
  const auto can = [&](const Device& d) { return computes_in(precision, d, kernels); };
  if (precision == Precision::f32 || std::ranges::any_of(devices, can)) return;
  std::vector<std::string> names;
  for (const Device& device : devices) names.push_back(device.str());
  throw std::invalid_argument(
      fmt::format("precision {} needs a GPU{}, and there is none among {}{}{}", name_of(precision),
                  precision == Precision::bf16 ? " or a CPU with AVX512-BF16" : "",
                  fmt::join(names, ", "), kernels.empty() ? "" : " with kernels ", kernels));
}

BackendScope::BackendScope(const Backend& backend) : outer_(chosen_backend) {
  chosen_backend = &backend;
}
BackendScope::~BackendScope() { chosen_backend = outer_; }

}  // namespace howmany
