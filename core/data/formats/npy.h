// SPDX-License-Identifier: Apache-2.0
// Parses the header of NumPy's .npy files, formats 1 to 3. Pure.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace howmany {

struct NpyHeader {
  Dtype dtype = Dtype::f32;  // f32 also for float16
  bool is_float16 = false;
  Shape shape = {};
  int64_t offset = 0;  // of the first element in the file

  int64_t element_bytes() const { return is_float16 ? 2 : static_cast<int64_t>(size_of(dtype)); }
};

// `start` is the beginning of the file, up to kMaxNpyHeader bytes. Throws Error with only the
// reason if the file is not .npy, truncated, big-endian or in Fortran order, or if its type or rank
// is not supported.
inline constexpr int64_t kMaxNpyHeader = 1 << 16;
NpyHeader parse_npy(std::string_view start);

}  // namespace howmany
