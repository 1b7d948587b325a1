// SPDX-License-Identifier: Apache-2.0
// The functions of NCCL that we use. libnccl is opened at run time, so that the program also starts
// on hosts without NCCL or a GPU. Thread-safe.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include "core/host/shared_library.h"

namespace howmany {

#define HM_NCCL_CALLS(X)    \
  X(ncclGetUniqueId)        \
  X(ncclCommInitRankConfig) \
  X(ncclCommGetAsyncError)  \
  X(ncclCommAbort)          \
  X(ncclCommFinalize)       \
  X(ncclGetErrorString)     \
  X(ncclGetVersion)         \
  X(ncclAllReduce)          \
  X(ncclBroadcast)          \
  X(ncclAllGather)          \
  X(ncclReduceScatter) X(ncclReduce) X(ncclSend) X(ncclRecv) X(ncclGroupStart) X(ncclGroupEnd)

struct NcclLibrary : SharedLibrary {
  // Throws Error if the library cannot be opened.
  static const NcclLibrary& get();

  NcclLibrary();
  HM_NCCL_CALLS(HM_LIBRARY_CALL)
};

// Throw EngineError. ncclInProgress is not an error.
void check_nccl(ncclResult_t result);
void check_cuda(cudaError_t error);

}  // namespace howmany
