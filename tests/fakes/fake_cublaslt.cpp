// SPDX-License-Identifier: Apache-2.0
// A fake cuBLASLt: product and epilogues by its manual, in plain loops over the fake GPUs' memory
// (fake_cuda.cpp).
//
// Product. Column-major, D = epilogue(op(A) op(B) + beta C).
// Dtypes. A and B are f32, read exactly or rounded to tf32, and D is f32. Or A and B are bf16, and
//   D is bf16 or f32. The bias has D's type.
// Errors. Rejects dimensions and types that do not match, and pointers that are less aligned than
//   the preference promised.
// Heuristics. They return several algorithms with different times on the GPU's clock. All are
//   exact unless a test sets them apart; some fail.
#include <cublasLt.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "core/tensor/bf16.h"
#include "tests/fakes/fake_cublaslt.h"
#include "tests/fakes/fake_gpu.h"

namespace {

struct Layout {
  cudaDataType type;
  uint64_t rows, columns;
  int64_t ld;
  int32_t batch = 1;
  int64_t apart = 0;
};
struct Description {
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  cublasOperation_t a = CUBLAS_OP_N, b = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;
  int32_t bias_type = -1;  // D's
};
struct Alignments {
  uint32_t a = 256, b = 256, c = 256, d = 256;
};
struct Algorithm {
  Alignments promised;
  int index = 0;
};
static_assert(sizeof(Algorithm) <= sizeof(cublasLtMatmulAlgo_t));

howmany::FakeCublasLt fake;

template <typename Handle, typename T>
cublasStatus_t make(Handle* handle, T* made) {
  ++fake.made;
  *handle = reinterpret_cast<Handle>(made);
  return CUBLAS_STATUS_SUCCESS;
}
template <typename T, typename Handle>
const T& as(Handle handle) {
  return *reinterpret_cast<const T*>(handle);
}

template <typename T>
void put(T& field, const void* value) {
  std::memcpy(static_cast<void*>(&field), value, sizeof field);
}

template <typename T>
T* opened(T* memory) {
  return static_cast<T*>(hm_fake_gpu_open(memory));
}

bool aligned(const void* p, uint32_t bytes) { return reinterpret_cast<uintptr_t>(p) % bytes == 0; }

// Rounds to the nearest value with 11 significand bits.
float to_tf32(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return std::isfinite(value) ? std::bit_cast<float>((bits + 0x1000) & ~0x1fffU) : value;
}

float value_at(const char* m, cudaDataType type, uint64_t at) {
  if (type == CUDA_R_16BF) {
    howmany::Bf16 half;
    std::memcpy(&half, m + at * sizeof half, sizeof half);
    return half;
  }
  float value = 0;
  std::memcpy(&value, m + at * sizeof value, sizeof value);
  return value;
}

void put_at(char* m, cudaDataType type, uint64_t at, float value) {
  if (type != CUDA_R_16BF) std::memcpy(m + at * sizeof value, &value, sizeof value);
  const howmany::Bf16 half(value);
  if (type == CUDA_R_16BF) std::memcpy(m + at * sizeof half, &half, sizeof half);
}

float element(const char* m, const Layout& layout, const Description& what, cublasOperation_t op,
              uint64_t i, uint64_t j) {
  const uint64_t row = op == CUBLAS_OP_N ? i : j, column = op == CUBLAS_OP_N ? j : i;
  const uint64_t at = row + column * static_cast<uint64_t>(layout.ld);
  const float value = value_at(m, layout.type, at);
  return what.compute == CUBLAS_COMPUTE_32F_FAST_TF32 ? to_tf32(value) : value;
}

int64_t size_of(const Layout& layout) { return layout.type == CUDA_R_16BF ? 2 : 4; }

bool types_fit(const Description& what, const Layout& a, const Layout& b, const Layout& d) {
  const bool halves = a.type == CUDA_R_16BF;
  return a.type == b.type && (d.type == CUDA_R_32F || halves) &&
         (what.bias_type == -1 || what.bias_type == static_cast<int32_t>(d.type)) &&
         (what.compute == CUBLAS_COMPUTE_32F ||
          (what.compute == CUBLAS_COMPUTE_32F_FAST_TF32 && !halves));
}

float finished(double sum, const Description& d, cudaDataType type, uint64_t row) {
  const bool biased = (d.epilogue & 4) != 0;
  const auto* const bias = biased ? static_cast<const char*>(opened(d.bias)) : nullptr;
  const auto value = static_cast<float>(sum + (biased ? value_at(bias, type, row) : 0));
  return (d.epilogue & 2) != 0 && value < 0 ? 0 : value;
}

struct OneProduct {
  const Description& what;
  const char* a;
  const Layout& la;
  const char* b;
  const Layout& lb;
  const char* c;
  char* d;
  const Layout& ld;
  uint64_t k;
  float factor, kept;
};

void multiply(const OneProduct& p) {
  for (uint64_t j = 0; j < p.ld.columns; ++j)
    for (uint64_t i = 0; i < p.ld.rows; ++i) {
      const uint64_t at = i + j * static_cast<uint64_t>(p.ld.ld);
      double sum = 0;
      for (uint64_t l = 0; l < p.k; ++l)
        sum += double{element(p.a, p.la, p.what, p.what.a, i, l)} *
               element(p.b, p.lb, p.what, p.what.b, l, j);
      sum *= double{p.factor};
      if (p.kept != 0) sum += double{p.kept * value_at(p.c, p.ld.type, at)};
      put_at(p.d, p.ld.type, at, finished(sum, p.what, p.ld.type, i));
    }
}

}  // namespace

extern "C" {

howmany::FakeCublasLt* hm_fake_cublaslt() { return &fake; }

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) { return make(handle, new int); }
size_t cublasLtGetVersion() { return 130'001; }
const char* cublasLtGetStatusString(cublasStatus_t) { return "the fake cuBLASLt refuses"; }

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* made, cublasComputeType_t compute,
                                        cudaDataType_t) {
  return make(made, new Description{.compute = compute});
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t made) {
  delete &as<Description>(made);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t made,
                                              cublasLtMatmulDescAttributes_t which,
                                              const void* value, size_t) {
  auto& d = const_cast<Description&>(as<Description>(made));
  if (which == CUBLASLT_MATMUL_DESC_TRANSA) put(d.a, value);
  if (which == CUBLASLT_MATMUL_DESC_TRANSB) put(d.b, value);
  if (which == CUBLASLT_MATMUL_DESC_EPILOGUE) put(d.epilogue, value);
  if (which == CUBLASLT_MATMUL_DESC_BIAS_POINTER) put(d.bias, value);
  if (which == CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE) put(d.bias_type, value);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* made, cudaDataType type,
                                          uint64_t rows, uint64_t columns, int64_t ld) {
  if (rows == 0 || columns == 0 || ld < static_cast<int64_t>(rows))
    return CUBLAS_STATUS_INVALID_VALUE;
  return make(made, new Layout{type, rows, columns, ld});
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t made) {
  delete &as<Layout>(made);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t made,
                                                cublasLtMatrixLayoutAttribute_t which,
                                                const void* value, size_t) {
  auto& layout = const_cast<Layout&>(as<Layout>(made));
  if (which == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) put(layout.batch, value);
  if (which == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET) put(layout.apart, value);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* made) {
  return make(made, new Alignments);
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t made) {
  delete &as<Alignments>(made);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t made,
                                                    cublasLtMatmulPreferenceAttributes_t which,
                                                    const void* value, size_t) {
  auto& p = const_cast<Alignments&>(as<Alignments>(made));
  if (which == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES) put(p.a, value);
  if (which == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES) put(p.b, value);
  if (which == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES) put(p.c, value);
  if (which == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES) put(p.d, value);
  return CUBLAS_STATUS_SUCCESS;
}

// The algorithm contains the promised alignments, which are checked when it runs.
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t results[],
                                              int* found) {
  ++fake.heuristics;
  *found = std::min(wanted, static_cast<int>(fake.algorithms.size()));
  for (int i = 0; i < *found; ++i) {
    const Algorithm one{as<Alignments>(preference), i};
    std::memcpy(&results[i].algo, &one, sizeof one);
    results[i].state = CUBLAS_STATUS_SUCCESS;
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t description, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                              cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                              cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t* algorithm, void*, size_t,
                              cudaStream_t stream) {
  const auto& what = as<Description>(description);
  const auto &la = as<Layout>(a_layout), &lb = as<Layout>(b_layout), &ld = as<Layout>(d_layout);
  Algorithm how;
  put(how, algorithm);
  const Alignments& promised = how.promised;
  const bool plain_a = what.a == CUBLAS_OP_N, plain_b = what.b == CUBLAS_OP_N;
  const uint64_t k = plain_a ? la.columns : la.rows;
  if ((plain_a ? la.rows : la.columns) != ld.rows || (plain_b ? lb.rows : lb.columns) != k ||
      (plain_b ? lb.columns : lb.rows) != ld.columns || la.batch != ld.batch ||
      lb.batch != ld.batch)
    return CUBLAS_STATUS_INVALID_VALUE;
  howmany::FakeAlgorithm& chosen = fake.algorithms.at(static_cast<size_t>(how.index));
  ++chosen.runs;
  if (!types_fit(what, la, lb, ld) || as<Layout>(c_layout).type != ld.type || chosen.seconds < 0)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  if ((what.epilogue & 4) != 0 && !aligned(what.bias, 16)) return CUBLAS_STATUS_EXECUTION_FAILED;
  const bool wrong = fake.right_rows > 0 && ld.columns > static_cast<uint64_t>(fake.right_rows);
  const auto factor = static_cast<float>(double{*static_cast<const float*>(alpha)} *
                                         (wrong ? 2 : 1 + how.index * fake.apart));
  const float kept = *static_cast<const float*>(beta);
  for (int64_t i = 0; i < ld.batch; ++i) {
    const auto* const first = static_cast<const char*>(a) + i * la.apart * size_of(la);
    const auto* const second = static_cast<const char*>(b) + i * lb.apart * size_of(lb);
    const auto* const added = static_cast<const char*>(c) + i * ld.apart * size_of(ld);
    auto* const result = static_cast<char*>(d) + i * ld.apart * size_of(ld);
    if (!aligned(first, promised.a) || !aligned(second, promised.b) || !aligned(result, promised.d))
      return CUBLAS_STATUS_NOT_SUPPORTED;
    const int refused = hm_fake_gpu_do(stream, [=, what = what, la = la, lb = lb, ld = ld] {
      multiply({what, opened(first), la, opened(second), lb, opened(added), opened(result), ld, k,
                factor, kept});
    });
    if (refused != 0) return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  const double seconds = chosen.seconds;
  hm_fake_gpu_do(stream, [=] { hm_fake_gpu_spend(stream, seconds); });
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
