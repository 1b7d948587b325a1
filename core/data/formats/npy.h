// SPDX-License-Identifier: Apache-2.0
// Parses the header of NumPy's .npy files, formats 1 to 3. Pure.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace howmany {

// An element type of NumPy.
struct NpyType {
  std::string_view descr;  // without the byte order: "u2"
  std::string_view name;   // "uint16"
  Dtype dtype;             // of samples: the type itself, or one that holds its values

  int64_t bytes() const { return descr.back() - '0'; }
};

struct NpyHeader {
  NpyType type;
  Shape shape = {};
  int64_t offset = 0;  // of the first element in the file
};

// `start` is the beginning of the file, up to kMaxNpyHeader bytes. Throws Error with only the
// reason if the file is not .npy, truncated, big-endian or in Fortran order, or if its type or rank
// is not supported.
inline constexpr int64_t kMaxNpyHeader = 1 << 16;
NpyHeader parse_npy(std::string_view start);

}  // namespace howmany
