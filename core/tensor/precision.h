// SPDX-License-Identifier: Apache-2.0
// The number formats of matrix products and stored activations.
//
// f32. Everything is f32.
// tf32 (GPUs). Matrix products round their inputs to tf32, which tensor cores multiply several
//   times as fast.
// bf16 (GPUs). Matrix products round their inputs to bf16. Activations and their gradients are
//   stored in bf16, in half the bytes. Parameters that products read have an additional bf16 copy
//   (2 bytes per element).
// bf16 (CPUs that multiply it, see cpu_has_bf16()). Linear layers and convolutions round the inputs
//   of their products to bf16, as torch.set_float32_matmul_precision("medium") does. Activations
//   stay f32. So do convolutions by Winograd's algorithm, which is as fast. Parameters have the
//   copy too.
// Mixes of GPUs and CPUs. The CPUs compute in f32 if they do not have the precision.
// Always f32: sums, parameters and their gradients, statistics, losses. Two exceptions with bf16:
//   attention probabilities are rounded between its two products, and gradients of convolution
//   weights are rounded to bf16 before they are stored as f32.
// Scope. A choice applies to the calling thread and to the threads of its parallel_apply() calls.
//
//   check_precision(Precision::bf16, devices);  // core/backends/selection.h
//   const PrecisionScope how(Precision::bf16);  // for this thread, until the scope ends
#pragma once

#include <string_view>
#include <vector>

#include "core/tensor/dtype.h"

namespace howmany {

// X(name, "effect on inputs"): significand bits kept of 24. The range is that of f32.
#define HM_PRECISIONS(X)                    \
  X(f32, "all 24 bits of its significand")  \
  X(tf32, "11 bits: no copy, tensor cores") \
  X(bf16, "8 bits, also of stored activations: tensor cores at twice that rate, half the bytes")

enum class Precision {
#define X(name, what) name,
  HM_PRECISIONS(X)
#undef X
};

std::string_view name_of(Precision precision);
std::vector<std::string_view> precision_names();
// Throws std::invalid_argument if the name is unknown, and suggests the nearest.
Precision precision_named(std::string_view name);

Precision current_precision();  // of the calling thread; default: f32

// Returns the dtype in which GPUs store activations and their gradients if they compute with
// `dtype` at the thread's precision. For others see stored_dtype() in core/backends/selection.h.
Dtype stored_on_gpus(Dtype dtype);

class PrecisionScope {
 public:
  explicit PrecisionScope(Precision precision);
  ~PrecisionScope();
  PrecisionScope(const PrecisionScope&) = delete;
  PrecisionScope& operator=(const PrecisionScope&) = delete;

 private:
  Precision outer_;
};

}  // namespace howmany
