// The part of NCCL that is used, from libnccl opened at run time: a program that was built with it
// still starts where neither it nor a GPU is. Thread-safe.
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
  // Throws Error when the library cannot be opened.
  static const NcclLibrary& get();

  NcclLibrary();
  HM_NCCL_CALLS(HM_LIBRARY_CALL)
};

// Throw EngineError. Not ready yet (ncclInProgress) is no error.
void check_nccl(ncclResult_t result);
void check_cuda(cudaError_t error);

}  // namespace howmany
