// How matrix products on GPUs read their f32 inputs: as they are, or rounded to a shorter format
// that the tensor cores multiply many times as fast. Sums and results are f32 all the same (but
// attention's in bf16, which cuDNN rounds as well), and so are parameters, gradients and
// activations; bf16 keeps a copy beside what products read, 2 bytes an element more, as long as its
// values stay. CPUs know f32 alone. A choice holds for the calling thread, and for those that
// compute for it (parallel_apply's).
//
//   check_precision(Precision::bf16, devices);
//   const PrecisionScope how(Precision::bf16);  // of this thread, until it ends
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/bf16.h"
#include "core/device.h"

namespace howmany {

// X(name, "what an input keeps"): significand bits, of 24, and the range of f32.
#define HM_PRECISIONS(X)                    \
  X(f32, "all 24 bits of its significand")  \
  X(tf32, "11 bits: no copy, tensor cores") \
  X(bf16, "8 bits: copied, tensor cores at twice that rate")

enum class Precision {
#define X(name, what) name,
  HM_PRECISIONS(X)
#undef X
};

std::string_view name_of(Precision precision);
std::vector<std::string_view> precision_names();
// These throw std::invalid_argument: for an unknown name, the nearest suggested; for a device that
// cannot, before anything ran.
Precision precision_named(std::string_view name);
void check_precision(Precision precision, std::span<const Device> devices);

Precision current_precision();  // of the calling thread; f32 unless chosen

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
