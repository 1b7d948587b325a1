// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/precision.h"

#include <stdexcept>

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

Precision current_precision() { return chosen; }

Dtype stored_on_gpus(Dtype dtype) {
  return chosen == Precision::bf16 && dtype == Dtype::f32 ? Dtype::bf16 : dtype;
}

PrecisionScope::PrecisionScope(Precision precision) : outer_(chosen) { chosen = precision; }
PrecisionScope::~PrecisionScope() { chosen = outer_; }

}  // namespace howmany
