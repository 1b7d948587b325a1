// SPDX-License-Identifier: Apache-2.0
// Matrix products by cuBLASLt. Thread-safe. Private to core/backends/cuda.
//
// Dtypes. Sums are f32, results f32 or bf16. f32 inputs are read in the precision of the calling
//   thread, bf16 inputs in bf16.
// Epilogue. Bias and relu are fused into the product.
// Caching. Descriptors and the measured algorithm are kept per kind of product (problem.h).
#pragma once

#include <cublasLt.h>

#include <compare>
#include <cstdint>
#include <string>

#include "core/tensor/precision.h"
#include "core/tensor/tensor.h"

namespace howmany::cuda {

struct Each {  // one value per matrix of a product
  int64_t a = 0, b = 0, y = 0;
  auto operator<=>(const Each&) const = default;
};

// A matrix and the tensor that contains it, with whose storage a bf16 copy is cached (halves.h). If
// the tensor is null, no copy is cached. Does not own the tensor.
struct Operand {
  Operand() = default;
  Operand(const Tensor& t) : Operand(t.raw(), t.dtype(), &t) {}  // NOLINT: a tensor is a matrix
  Operand(const void* at, Dtype as, const Tensor* part_of = nullptr)
      : data(at), dtype(as), whole(part_of) {}

  const void* data = nullptr;
  Dtype dtype = Dtype::f32;  // or bf16
  const Tensor* whole = nullptr;
};

struct Result {
  Result() = default;
  Result(Tensor& t) : Result(t.mutable_raw(), t.dtype()) {}  // NOLINT
  Result(void* at, Dtype as) : data(at), dtype(as) {}

  void* data = nullptr;
  Dtype dtype = Dtype::f32;  // or bf16
};

// y [m,n] (+)= factor op(a) [m,k] op(b) [k,n], all row-major. Batched matrices are `apart` elements
// from each other.
struct Product {
  Operand a{}, b{};
  Result y{};
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false, accumulate = false;
  Operand bias{};  // [n], added to each row; null: none. cuBLASLt gets it in y's dtype
  bool relu = false;
  float factor = 1;
  Each strides = {};  // between rows, in elements; 0: dense
  int64_t batch = 1;
  Each apart = {};
  Precision inputs = Precision::f32;  // how cuBLASLt reads a and b; bf16: they are stored so
};

// cuBLASLt is column-major: y^T [n,m] = op(b)^T op(a)^T, so b is its first matrix.
struct Stored {
  int64_t rows, columns, ld;  // as stored, column-major
  cublasOperation_t operation;
  int64_t batch, apart;
};
Stored first_of(const Product& p);
Stored second_of(const Product& p);
Stored result_of(const Product& p);
cublasLtEpilogue_t epilogue_of(const Product& p);

// Identifies a kind of product: an algorithm is valid for one key. cuBLASLt's heuristics assume
// 256-byte alignment by default.
struct ProblemKey {
  int device;
  int64_t m, n, k;
  bool transpose_a, transpose_b, accumulate;
  cublasLtEpilogue_t epilogue;
  uint32_t align_a, align_b, align_y, align_bias;
  Each strides;
  int64_t batch;
  Each apart;
  Precision inputs;
  Dtype result;
  auto operator<=>(const ProblemKey&) const = default;
};
// Returns the alignment in bytes, at most 64, of p and of all matrices `apart` bytes from each
// other.
uint32_t alignment_of(const void* p, int64_t apart = 0);
ProblemKey key_of(const Product& p, int device);

// Chooses p.inputs itself.
void multiply(const Product& p, int device);

std::string blas_version();  // "cuBLASLt 13.0.2"; throws Error if it cannot be opened

}  // namespace howmany::cuda
