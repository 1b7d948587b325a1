// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/precision.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/text/names.h"

namespace howmany {
namespace {

thread_local Precision chosen = Precision::f32;

}  // namespace

std::vector<std::string_view> precision_names() {
  return {
#define X(name, what) #name,
      HM_PRECISIONS(X)
#undef X
  };
}

std::string_view name_of(Precision precision) {
  return precision_names()[static_cast<size_t>(precision)];
}

Precision precision_named(std::string_view name) {
#define X(id, what) \
  if (name == #id) return Precision::id;
  HM_PRECISIONS(X)
#undef X
  throw std::invalid_argument(unknown_name("precision", name, precision_names()));
}

void check_precision(Precision precision, std::span<const Device> devices) {
  const auto is_gpu = [](const Device& device) { return device.type != DeviceType::cpu; };
  if (precision == Precision::f32 || std::ranges::any_of(devices, is_gpu)) return;
  std::vector<std::string> names;
  for (const Device& device : devices) names.push_back(device.str());
  throw std::invalid_argument(fmt::format("precision {} needs a GPU, and there is none among {}",
                                          name_of(precision), fmt::join(names, ", ")));
}

Precision current_precision() { return chosen; }

Dtype stored_dtype(Dtype dtype, Device device) {
  const bool shorter = chosen == Precision::bf16 && device.type != DeviceType::cpu;
  return shorter && dtype == Dtype::f32 ? Dtype::bf16 : dtype;
}

PrecisionScope::PrecisionScope(Precision precision) : outer_(chosen) { chosen = precision; }
PrecisionScope::~PrecisionScope() { chosen = outer_; }

}  // namespace howmany
