// Matrix products by cuBLASLt. Bias and relu ride in the product's epilogue; what a kind of product
// needs is made once and kept, its algorithm measured (problem.h). Sums are f32, results f32 or
// bf16; the inputs are read in the precision of the calling thread, and where a matrix is stored in
// bf16 in that. Thread-safe. Private to core/backends/cuda.
#pragma once

#include <cublasLt.h>

#include <compare>
#include <cstdint>
#include <string>

#include "core/tensor/precision.h"
#include "core/tensor/tensor.h"

namespace howmany::cuda {

struct Each {  // of a product's matrices
  int64_t a = 0, b = 0, y = 0;
  auto operator<=>(const Each&) const = default;
};

// A matrix, and the tensor that it is part of, with which a copy in bf16 stays (halves.h); null:
// none does. That tensor is not kept.
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

// y [m,n] (+)= factor op(a) [m,k] op(b) [k,n], all row-major. Of `batch` matrices the next lies
// `apart` elements on.
struct Product {
  Operand a{}, b{};
  Result y{};
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false, accumulate = false;
  Operand bias{};  // [n], of y's type when cuBLASLt sees it; added to each row where there is one
  bool relu = false;
  float factor = 1;
  Each strides = {};  // from row to row; 0: dense
  int64_t batch = 1;
  Each apart = {};
  Precision inputs = Precision::f32;  // as cuBLASLt reads a and b; bf16: they lie there so
};

// cuBLASLt thinks in columns: y^T [n,m] = op(b)^T op(a)^T, so b is its first matrix.
struct Stored {
  int64_t rows, columns, ld;  // as it lies, column-major
  cublasOperation_t operation;
  int64_t batch, apart;
};
Stored first_of(const Product& p);
Stored second_of(const Product& p);
Stored result_of(const Product& p);
cublasLtEpilogue_t epilogue_of(const Product& p);

// What an algorithm is good for. Heuristics assume 256-byte alignment unless told.
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
// In bytes, at most 256, of all matrices `apart` bytes from each other.
uint32_t alignment_of(const void* p, int64_t apart = 0);
ProblemKey key_of(const Product& p, int device);

// `inputs` is chosen here.
void multiply(const Product& p, int device);

std::string blas_version();  // "cuBLASLt 13.0.2"; throws Error when it cannot be opened

}  // namespace howmany::cuda
