// SPDX-License-Identifier: Apache-2.0
// Argument checks of operations. Each throws std::invalid_argument with the operation and the
// argument: "[linear] bias is f32 [4], expected f32 [3]".
#pragma once

#include "core/backends/backend.h"
#include "core/base/error.h"
#include "core/tensor/id_range.h"

namespace howmany::check {

inline void rank(const char* op, const char* what, const Tensor& t, int wanted) {
  HM_REQUIRE(t, "[{}] {} is an empty handle", op, what);
  HM_REQUIRE(t.shape().rank() == wanted, "[{}] {} has shape {}, expected {} extents", op, what,
             t.shape().str(), wanted);
}

inline void same(const char* op, const char* what, const Tensor& t, const Shape& shape, Dtype dtype,
                 Device device) {
  HM_REQUIRE(t, "[{}] {} is an empty handle", op, what);
  HM_REQUIRE(t.shape() == shape && t.dtype() == dtype, "[{}] {} is {} {}, expected {} {}", op, what,
             name_of(t.dtype()), t.shape().str(), name_of(dtype), shape.str());
  HM_REQUIRE(t.device() == device, "[{}] {} is on {}, expected {}", op, what, t.device().str(),
             device.str());
}

// Requires that `t` has this shape, and the dtype and device of `like`.
inline void shape(const char* op, const char* what, const Tensor& t, const Shape& wanted,
                  const Tensor& like) {
  same(op, what, t, wanted, like.dtype(), like.device());
}

inline void alike(const char* op, const char* what, const Tensor& t, const Tensor& like) {
  shape(op, what, t, like.shape(), like);
}

// Requires that a parameter or statistic has this shape, the device of the activation `like`, and
// the dtype that beside() returns for it.
inline void beside(const char* op, const char* what, const Tensor& t, const Shape& wanted,
                   const Tensor& like) {
  same(op, what, t, wanted, howmany::beside(like.dtype()), like.device());
}

// The same for a parameter that products read: it may have the dtype of the activation too.
inline void weight(const char* op, const char* what, const Tensor& t, const Shape& wanted,
                   const Tensor& like) {
  const bool rounded = t && t.dtype() == like.dtype();
  same(op, what, t, wanted, rounded ? like.dtype() : howmany::beside(like.dtype()), like.device());
}

// The same for the gradient of a parameter, which may be absent.
inline void grad(const char* op, const char* what, const GradOut& g, const Shape& wanted,
                 const Tensor& like) {
  if (g.value) beside(op, what, g.value, wanted, like);
}

inline void floating(const char* op, const char* what, const Tensor& t) {
  HM_REQUIRE(t, "[{}] {} is an empty handle", op, what);
  const bool half = t.dtype() == Dtype::bf16 && t.device().type != DeviceType::cpu;
  HM_REQUIRE(t.dtype() == Dtype::f32 || t.dtype() == Dtype::f64 || half,
             "[{}] {} is {}, expected f32 or f64", op, what, name_of(t.dtype()));
}

// Requires that every value of the i64 tensor is in [0, bound). Blocks the host if the tensor is on
// a GPU and known_range() does not know its range.
inline void below(const char* op, const char* what, const Tensor& t, int64_t bound) {
  HM_REQUIRE(t && t.dtype() == Dtype::i64, "[{}] {} must be i64", op, what);
  if (t.device().type == DeviceType::meta) return;
  const std::optional<IdRange> known = known_range(t);
  if (known && known->least >= 0 && known->most < bound) return;
  const Tensor host = t.device().type == DeviceType::cpu ? t : t.to(Device{});
  const auto values = host.values<int64_t>();
  for (size_t i = 0; i < values.size(); ++i)
    HM_REQUIRE(values[i] >= 0 && values[i] < bound, "[{}] {} {} is {}, outside [0, {})", op, what,
               i, values[i], bound);
}

}  // namespace howmany::check
