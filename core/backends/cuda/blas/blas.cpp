// SPDX-License-Identifier: Apache-2.0
#include "core/backends/cuda/blas/blas.h"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <mutex>

#include "core/backends/cuda/blas/cublaslt.h"
#include "core/backends/cuda/blas/halves.h"
#include "core/backends/cuda/blas/problem.h"
#include "core/backends/cuda/runtime/runtime.h"
#include "core/base/error.h"

namespace howmany::cuda {
namespace {

// No kernel loads more than 16 bytes at once. Gradients in a bucket are aligned to 64 bytes and
// tensors to 256. Both must be the same kind of product, so that they get the same algorithm.
constexpr uint32_t kBestAlignment = 64;

// One per GPU: all its products are on one stream, so they can share a workspace.
const LtRoom& room_of(int device) {
  struct Room : LtRoom {
    std::once_flag once;
  };
  static auto* const all = new std::array<Room, 64>;
  Room& one = all->at(static_cast<size_t>(device));
  std::call_once(one.once, [&] {
    check(cublaslt().cublasLtCreate(&one.handle), "cublasLtCreate");
    check(cudaMalloc(&one.workspace, kWorkspace), "workspace");
  });
  return one;
}

Problem& problem_of(const Product& p, int device) {
  static std::mutex mutex;
  static auto* const known = new std::map<ProblemKey, Problem>;
  const LtRoom& room = room_of(device);
  const ProblemKey key = key_of(p, device);
  const std::lock_guard lock(mutex);
  return known->try_emplace(key, p, key, room).first->second;
}

void multiply_as_it_lies(const Product& p, int device, const OnDevice& on) {
  problem_of(p, device).multiply(p, on);
}

// Pool memory is freed in stream order, so the copies live until the product completes.
void multiply_halves(Product p, int device, const OnDevice& on) {
  const auto copy = [&](Operand& of, int64_t rows, int64_t columns, int64_t& stride,
                        int64_t& apart) {
    Half half =
        half_of({of.data, rows, columns, stride > 0 ? stride : columns, p.batch, apart, of.dtype},
                of.whole, {DeviceType::cuda, device}, on);
    of.data = half.data;
    stride = half.stride;
    apart = half.apart;
    return half;
  };
  const Half a =
      copy(p.a, p.transpose_a ? p.k : p.m, p.transpose_a ? p.m : p.k, p.strides.a, p.apart.a);
  const Half b =
      copy(p.b, p.transpose_b ? p.n : p.k, p.transpose_b ? p.k : p.n, p.strides.b, p.apart.b);
  Half bias;
  if (p.bias.data != nullptr && p.y.dtype == Dtype::bf16) {
    bias = half_of({.data = p.bias.data, .rows = 1, .columns = p.n, .dtype = p.bias.dtype},
                   p.bias.whole, {DeviceType::cuda, device}, on);
    p.bias.data = bias.data;
  }
  multiply_as_it_lies(p, device, on);
}

// The product for inner size 0.
void nothing(const Product& p, const OnDevice& on) {
  HM_REQUIRE(p.bias.data == nullptr && p.batch == 1 && p.strides.y == 0,
             "[cuda] a bias, a batch or rows apart with nothing to add: inner size 0");
  const auto bytes = static_cast<size_t>(p.m * p.n) * size_of(p.y.dtype);
  if (!p.accumulate) check(cudaMemsetAsync(p.y.data, 0, bytes, on.stream()), "matmul");
}

// Copies a misaligned bias: cuBLASLt has no setting for its alignment and assumes that of a tensor.
Tensor straightened(Operand& bias, int64_t columns, int device, const OnDevice& on) {
  if (bias.data == nullptr || alignment_of(bias.data) >= 16) return {};
  const Tensor copy = Tensor::empty({columns}, bias.dtype, {DeviceType::cuda, device});
  check(cudaMemcpyAsync(const_cast<void*>(copy.raw()), bias.data, static_cast<size_t>(copy.bytes()),
                        cudaMemcpyDeviceToDevice, on.stream()),
        "bias");
  bias = Operand(copy.raw(), bias.dtype);
  return copy;
}

bool reads_halves(const Product& p) {
  const auto half = [](const auto& m) { return m.dtype == Dtype::bf16; };
  return half(p.a) || half(p.b) || half(p.y);
}

}  // namespace

Stored first_of(const Product& p) {
  const int64_t rows = p.transpose_b ? p.k : p.n, columns = p.transpose_b ? p.n : p.k;
  return {rows,
          columns,
          p.strides.b > 0 ? p.strides.b : rows,
          p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N,
          p.batch,
          p.apart.b};
}

Stored second_of(const Product& p) {
  const int64_t rows = p.transpose_a ? p.m : p.k, columns = p.transpose_a ? p.k : p.m;
  return {rows,
          columns,
          p.strides.a > 0 ? p.strides.a : rows,
          p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N,
          p.batch,
          p.apart.a};
}

Stored result_of(const Product& p) {
  return {p.n, p.m, p.strides.y > 0 ? p.strides.y : p.n, CUBLAS_OP_N, p.batch, p.apart.y};
}

cublasLtEpilogue_t epilogue_of(const Product& p) {
  if (p.bias.data == nullptr) return p.relu ? CUBLASLT_EPILOGUE_RELU : CUBLASLT_EPILOGUE_DEFAULT;
  return p.relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS;
}

uint32_t alignment_of(const void* p, int64_t apart) {
  const auto address = reinterpret_cast<uintptr_t>(p) | static_cast<uintptr_t>(apart);
  return address == 0
             ? kBestAlignment
             : std::min(kBestAlignment, uint32_t{1} << std::min(std::countr_zero(address), 8));
}

ProblemKey key_of(const Product& p, int device) {
  const int64_t input = p.inputs == Precision::bf16 ? 2 : 4;
  return {device,
          p.m,
          p.n,
          p.k,
          p.transpose_a,
          p.transpose_b,
          p.accumulate,
          epilogue_of(p),
          alignment_of(p.a.data, input * p.apart.a),
          alignment_of(p.b.data, input * p.apart.b),
          alignment_of(p.y.data, static_cast<int64_t>(size_of(p.y.dtype)) * p.apart.y),
          alignment_of(p.bias.data),
          p.strides,
          p.batch,
          p.apart,
          p.inputs,
          p.y.dtype};
}

void multiply(const Product& p, int device) {
  if (p.m == 0 || p.n == 0) return;
  const OnDevice on(device);
  if (p.k == 0) return nothing(p, on);
  Product read = p;
  const Tensor bias = straightened(read.bias, p.n, device, on);  // lives until it is enqueued
  read.inputs = reads_halves(p) ? Precision::bf16 : current_precision();
  if (read.inputs == Precision::bf16)
    multiply_halves(read, device, on);
  else
    multiply_as_it_lies(read, device, on);
}

std::string blas_version() {
  const size_t v = cublaslt().cublasLtGetVersion();
  return fmt::format("cuBLASLt {}.{}.{}", v / 10'000, v / 100 % 100, v % 100);
}

}  // namespace howmany::cuda
