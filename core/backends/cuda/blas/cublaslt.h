// SPDX-License-Identifier: Apache-2.0
// cuBLASLt, opened at run time, so that programs also start on hosts without it, and owners for its
// objects. Thread-safe. Private to core/backends/cuda.
#pragma once

#include <cublasLt.h>

#include <memory>

#include "core/host/shared_library.h"

namespace howmany::cuda {

#define HM_CUBLASLT_CALLS(X)              \
  X(cublasLtCreate)                       \
  X(cublasLtGetVersion)                   \
  X(cublasLtGetStatusString)              \
  X(cublasLtMatmulDescCreate)             \
  X(cublasLtMatmulDescDestroy)            \
  X(cublasLtMatmulDescSetAttribute)       \
  X(cublasLtMatrixLayoutCreate)           \
  X(cublasLtMatrixLayoutDestroy)          \
  X(cublasLtMatrixLayoutSetAttribute)     \
  X(cublasLtMatmulPreferenceCreate)       \
  X(cublasLtMatmulPreferenceDestroy)      \
  X(cublasLtMatmulPreferenceSetAttribute) \
  X(cublasLtMatmulAlgoGetHeuristic)       \
  X(cublasLtMatmul)

struct CublasLt : SharedLibrary {
  CublasLt();
  HM_CUBLASLT_CALLS(HM_LIBRARY_CALL)
};
const CublasLt& cublaslt();  // throws Error if it cannot be opened

void check(cublasStatus_t status, const char* what);  // throws Error with `what` and the reason

// Returns a unique_ptr that destroys the object by the library's Destroy function.
template <typename T, typename Destroy>
auto owned(T* made, Destroy destroy) {
  return std::unique_ptr<T, Destroy>(made, destroy);
}

}  // namespace howmany::cuda
