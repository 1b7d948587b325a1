// SPDX-License-Identifier: Apache-2.0
#include "parallel/engines/combine.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

namespace howmany {
namespace {

bool is_nan(auto value) { return std::isnan(static_cast<double>(value)); }
bool is_negative(auto value) { return std::signbit(static_cast<double>(value)); }

struct Sum {
  template <typename T>
  static T of(T a, T b) {
    return static_cast<T>(a + b);
  }
};
// Max and min are commutative, because ranks reduce in different orders and must agree. NaN wins,
// and +0 is larger than -0.
struct Max {
  template <typename T>
  static T of(T a, T b) {
    if constexpr (std::is_integral_v<T>) return std::max(a, b);
    return a > b || is_nan(a) || (a == b && !is_negative(a)) ? a : b;
  }
};
struct Min {
  template <typename T>
  static T of(T a, T b) {
    if constexpr (std::is_integral_v<T>) return std::min(a, b);
    return a < b || is_nan(a) || (a == b && is_negative(a)) ? a : b;
  }
};

template <typename T, typename Op>
void combine(void* out, const void* a, const void* b, size_t count) {
  T* const to = static_cast<T*>(out);
  const T* const x = static_cast<const T*>(a);
  const T* const y = static_cast<const T*>(b);
#pragma GCC ivdep
  for (size_t i = 0; i < count; ++i) to[i] = Op::of(x[i], y[i]);
}

template <typename Op>
Combine combine_for(Dtype dtype) {
  switch (dtype) {
#define X(name, type) \
  case Dtype::name:   \
    return &combine<type, Op>;
    HM_DTYPES(X)
#undef X
  }
  return nullptr;
}

}  // namespace

Combine combine_of(Dtype dtype, ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return combine_for<Sum>(dtype);
    case ReduceOp::max:
      return combine_for<Max>(dtype);
    case ReduceOp::min:
      return combine_for<Min>(dtype);
  }
  return nullptr;
}

}  // namespace howmany
