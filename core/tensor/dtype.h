// SPDX-License-Identifier: Apache-2.0
// Element types. Training uses f32. f64 is for gradient checks on the reference backend. i64 holds
// labels and token ids. GPUs store activations in bf16 if the precision is bf16
// (core/tensor/precision.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "core/tensor/bf16.h"

namespace howmany {

#define HM_DTYPES(X) \
  X(f32, float) X(f64, double) X(i32, int32_t) X(i64, int64_t) X(u8, uint8_t) X(bf16, Bf16)

enum class Dtype : uint8_t {
#define X(name, type) name,
  HM_DTYPES(X)
#undef X
};

size_t size_of(Dtype dtype);
std::string_view name_of(Dtype dtype);

// Returns the dtype of parameters, their gradients and statistics if activations have this dtype.
constexpr Dtype beside(Dtype activations) {
  return activations == Dtype::bf16 ? Dtype::f32 : activations;
}

template <typename T>
constexpr Dtype dtype_of() {
#define X(name, type) \
  if constexpr (std::is_same_v<std::remove_const_t<T>, type>) return Dtype::name;
  HM_DTYPES(X)
#undef X
}

}  // namespace howmany
