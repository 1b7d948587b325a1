// cuBLASLt, opened at run time as NCCL is, so that programs start where it is not; and owners of
// what it makes. Thread-safe. Private to core/backends/cuda.
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
const CublasLt& cublaslt();  // throws Error where it cannot be opened

void check(cublasStatus_t status, const char* what);  // throws Error with what failed and why

// Owned by unique_ptr through the library's own Destroy.
template <typename T, typename Destroy>
auto owned(T* made, Destroy destroy) {
  return std::unique_ptr<T, Destroy>(made, destroy);
}

}  // namespace howmany::cuda
