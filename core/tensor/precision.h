// How GPUs compute: in f32; with what matrix products read rounded to tf32, which the tensor cores
// multiply many times as fast; or in bf16, with what products read and every activation and its
// gradient rounded when stored, in half the bytes. Sums are f32 all the same (but the probabilities
// of attention are rounded between its products), and so are parameters, their gradients (those of
// convolutions' weights rounded to bf16 on the way), statistics and losses; of parameters that
// products read bf16 keeps a copy, 2 bytes an element more. CPUs know f32 alone, and compute so
// beside GPUs. A choice holds for the calling thread, and for those that compute for it
// (parallel_apply's).
//
//   check_precision(Precision::bf16, devices);
//   const PrecisionScope how(Precision::bf16);  // of this thread, until it ends
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/tensor/device.h"
#include "core/tensor/dtype.h"

namespace howmany {

// X(name, "what is kept of an input"): significand bits, of 24, and the range of f32.
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
// These throw std::invalid_argument: for an unknown name, the nearest suggested; where no device
// can compute so, before anything ran.
Precision precision_named(std::string_view name);
void check_precision(Precision precision, std::span<const Device> devices);

Precision current_precision();  // of the calling thread; f32 unless chosen

// What activations and their gradients are stored in where `device` computes with `dtype` in the
// thread's precision.
Dtype stored_dtype(Dtype dtype, Device device);

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
