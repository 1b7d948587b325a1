#include "parallel/comms/nccl_library.h"

#include "parallel/engine.h"

namespace howmany {

NcclLibrary::NcclLibrary() : SharedLibrary("libnccl.so.2", HM_NCCL_LIBRARY) {}

const NcclLibrary& NcclLibrary::get() {
  static const NcclLibrary nccl;
  return nccl;
}

void check_nccl(ncclResult_t result) {
  if (result != ncclSuccess && result != ncclInProgress)
    throw EngineError(-1, NcclLibrary::get().ncclGetErrorString(result));
}

void check_cuda(cudaError_t error) {
  if (error != cudaSuccess) throw EngineError(-1, cudaGetErrorString(error));
}

}  // namespace howmany
