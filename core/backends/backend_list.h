// SPDX-License-Identifier: Apache-2.0
// The backends of this build. A backend is its files in core/backends plus its line here. The line
// adds it to the command line, the conformance tests and the tests of numerical equivalence.
// Backends whose libraries are optional have a macro each.
#pragma once

#include <howmany_parts.h>

#include <memory>

// One line per backend: X(name, "description").
#if HM_HAVE_ONEDNN
#define HM_BACKENDS_ONEDNN(X) \
  X(onednn, "oneDNN primitives and fused loops on CPU cores, f32 and bf16")
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
