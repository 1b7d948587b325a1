// The backends of this build: a new one is its files in core/backends and its line here, which
// enrols it in the conformance tests, the law and the command line. Those of libraries that may be
// missing have lists of their own.
#pragma once

#include <howmany_parts.h>

#include <memory>

// One line per backend: X(name, "what it is").
#if HM_HAVE_ONEDNN
#define HM_BACKENDS_ONEDNN(X) X(onednn, "oneDNN primitives and fused loops on CPU cores, f32")
#else
#define HM_BACKENDS_ONEDNN(X)
#endif
#if HM_HAVE_CUDA
#define HM_BACKENDS_CUDA(X) X(cuda, "cuBLASLt and own kernels on NVIDIA GPUs, f32 and bf16")
#else
#define HM_BACKENDS_CUDA(X)
#endif
#define HM_BACKENDS(X)                                                \
  X(reference, "naive loops in f32 and f64: slow, plain, the oracle") \
  HM_BACKENDS_CUDA(X)                                                 \
  HM_BACKENDS_ONEDNN(X)

namespace howmany {
class Backend;
namespace backends {
#define X(name, what) std::unique_ptr<Backend> name();
HM_BACKENDS(X)
#undef X
}  // namespace backends
}  // namespace howmany
