// The header of NumPy's .npy files, formats 1 to 3: what the array holds and where it begins. Pure.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace howmany {

struct NpyHeader {
  Dtype dtype = Dtype::f32;
  Shape shape = {};
  int64_t offset = 0;  // of the first element in the file
};

// `start` holds the file from its beginning, as much as there is up to kMostNpyHeader bytes. Throws
// Error with the reason alone: not .npy, cut short, big-endian, Fortran order, a type that is none
// of Dtype's, more extents than a Shape has.
inline constexpr int64_t kMostNpyHeader = 1 << 16;
NpyHeader parse_npy(std::string_view start);

}  // namespace howmany
