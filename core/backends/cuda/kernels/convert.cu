// SPDX-License-Identifier: Apache-2.0
#include "core/backends/cuda/kernels/launch.cuh"
#include "core/gpu/gpu.h"

namespace howmany {
namespace cuda {
namespace {

template <typename To, typename From>
struct Convert {
  To* to;
  const From* from;
  __device__ void operator()(int64_t i) const { to[i] = static_cast<To>(from[i]); }
};

template <typename To>
void convert(To* to, const void* from, Dtype from_dtype, int64_t count, const OnDevice& on) {
  switch (from_dtype) {
#define X(name, type) \
  case Dtype::name:   \
    return each(count, on, Convert<To, type>{to, static_cast<const type*>(from)});
    HM_DTYPES(X)
#undef X
  }
}

}  // namespace
}  // namespace cuda

void gpu::convert(void* to, Dtype to_dtype, const void* from, Dtype from_dtype, int64_t count,
                  int index) {
  const cuda::OnDevice on(index);
  switch (to_dtype) {
#define X(name, type) \
  case Dtype::name:   \
    return cuda::convert(static_cast<type*>(to), from, from_dtype, count, on);
    HM_DTYPES(X)
#undef X
  }
}

}  // namespace howmany
