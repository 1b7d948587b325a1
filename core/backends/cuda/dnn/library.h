// SPDX-License-Identifier: Apache-2.0
// The calls of cuDNN's backend API. Private to core/backends/cuda.
#pragma once

#include <cudnn.h>

#include "core/host/shared_library.h"

namespace howmany::cuda::dnn {

#define HM_CUDNN_CALLS(X)          \
  X(cudnnGetVersion)               \
  X(cudnnGetErrorString)           \
  X(cudnnGetLastErrorString)       \
  X(cudnnCreate)                   \
  X(cudnnSetStream)                \
  X(cudnnBackendCreateDescriptor)  \
  X(cudnnBackendDestroyDescriptor) \
  X(cudnnBackendSetAttribute)      \
  X(cudnnBackendGetAttribute)      \
  X(cudnnBackendFinalize)          \
  X(cudnnBackendExecute)

struct Library : SharedLibrary {
  Library();
  HM_CUDNN_CALLS(HM_LIBRARY_CALL)
};
const Library& library();  // throws Error if it cannot be opened

// Throws Error with cuDNN's message.
void check(cudnnStatus_t status, const char* what);

}  // namespace howmany::cuda::dnn
