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

const Backend& backend_for(const Tensor& t) {
  const DeviceType device = t.device().type;
  if (t.dtype() == Dtype::f64 && device == DeviceType::cpu) return *all_backends().front();
  if (chosen_backend != nullptr && chosen_backend->device_type() == device) return *chosen_backend;
  if (device == DeviceType::meta) return meta_backend();
  return best_backend(device, t.dtype());
}

BackendScope::BackendScope(const Backend& backend) : outer_(chosen_backend) {
  chosen_backend = &backend;
}
BackendScope::~BackendScope() { chosen_backend = outer_; }

}  // namespace howmany
