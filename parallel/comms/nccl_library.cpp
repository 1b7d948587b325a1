#include "parallel/comms/nccl_library.h"

#include <dlfcn.h>

#include <string>

#include "parallel/engine.h"

namespace howmany {
namespace {

// HM_NCCL_LIBRARY: where it was when this was built, for hosts whose loader does not know it.
void* open_library() {
  for (const char* const name : {"libnccl.so.2", HM_NCCL_LIBRARY})
    if (void* const library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
  throw EngineError(-1, std::string("libnccl: ") + dlerror());
}

NcclLibrary load() {
  void* const library = open_library();  // stays open: its threads may outlive any owner
  NcclLibrary nccl;
#define X(call)                                                             \
  nccl.call = reinterpret_cast<decltype(nccl.call)>(dlsym(library, #call)); \
  if (nccl.call == nullptr) throw EngineError(-1, "libnccl has no " #call);
  HM_NCCL_CALLS(X)
#undef X
  return nccl;
}

}  // namespace

const NcclLibrary& NcclLibrary::get() {
  static const NcclLibrary nccl = load();
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
