// SPDX-License-Identifier: Apache-2.0
#include "parallel/engines/nccl_library.h"

#include "core/base/error.h"
#include "core/gpu/gpu.h"
#include "parallel/comm/comm_list.h"

namespace howmany {

NcclLibrary::NcclLibrary() : SharedLibrary("libnccl.so.2", HM_NCCL_LIBRARY) {}

const NcclLibrary& NcclLibrary::get() {
  static const NcclLibrary nccl;
  return nccl;
}

std::string comms::nccl_unavailable(const Place& place) {
  if (gpu::count() == 0) return gpu::unavailable();
  if (std::string why = gloo_unavailable(place); !why.empty()) return why;
  try {
    NcclLibrary::get();
    return "";
  } catch (const Error& e) {
    return e.what();
  }
}

void check_nccl(ncclResult_t result) {
  if (result != ncclSuccess && result != ncclInProgress)
    throw EngineError(-1, NcclLibrary::get().ncclGetErrorString(result));
}

void check_cuda(cudaError_t error) {
  if (error != cudaSuccess) throw EngineError(-1, cudaGetErrorString(error));
}

}  // namespace howmany
