// SPDX-License-Identifier: Apache-2.0
#include "core/backends/cuda/blas/cublaslt.h"

#include <string>

#include "core/base/error.h"

namespace howmany::cuda {

CublasLt::CublasLt()
    : SharedLibrary("libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR), HM_CUBLASLT_LIBRARY) {}

const CublasLt& cublaslt() {
  static const CublasLt lt;
  return lt;
}

void check(cublasStatus_t status, const char* what) {
  HM_ENSURE(status == CUBLAS_STATUS_SUCCESS, "[cuda] {}: {}", what,
            cublaslt().cublasLtGetStatusString(status));
}

}  // namespace howmany::cuda
