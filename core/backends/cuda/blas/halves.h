// What products read in bf16: tensors that are stored so, as they lie, and copies of others, which
// are f32 or have rows that must be padded. A tensor's copy stays with its storage until its values
// change (Tensor::version), so that it is made once for all products of it, and of a weight once a
// step, or not at all where the optimizer writes both. That is 2 bytes an element beside those of
// the tensor: of weights for good, of all else as long as it lives.
// Within the capture of a graph only copies made there count, which are made whenever it runs, and
// those that the optimizer keeps up between the launches, which are looked at before each; those
// made before the launch of a graph do not count after it (epoch, capture.h).
// All is done in the stream's order. Thread-safe. Private to core/backends/cuda.
#pragma once

#include <cstdint>

#include "core/backends/cuda/kernels/cast.h"
#include "core/tensor/tensor.h"

namespace howmany::cuda {

// Rows begin at 16 bytes, as the fast algorithms want.
constexpr int64_t kPad = 8;

struct Half {
  Tensor room;  // keeps the data until what reads it was asked for
  const void* data = nullptr;
  int64_t stride = 0, apart = 0;  // elements
};

// `whole` is the tensor that m is part of; null: unknown, and the copy is made anew.
Half half_of(const Matrix& m, const Tensor* whole, Device device, const OnDevice& on);

// The elements of t as they lie.
Half half_of(const Tensor& t, const OnDevice& on);

// For a kernel that writes all of `changed`, marked as changed before, and its copy with it: where
// that is, element by element. It is good from now on. Null where none is kept.
Bf16* kept_half_of(const Tensor& changed);

}  // namespace howmany::cuda
