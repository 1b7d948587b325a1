// SPDX-License-Identifier: Apache-2.0
#include "core/backends/cuda/runtime/cuda.h"

#include "core/backends/cuda/blas/blas.h"
#include "core/backends/cuda/dnn/dnn.h"
#include "core/backends/cuda/runtime/runtime.h"
#include "core/base/error.h"
#include "core/gpu/gpu.h"

namespace howmany::backends {
namespace {

std::string gpu_name(int index) {
  cudaDeviceProp properties{};
  cuda::check(cudaGetDeviceProperties(&properties, index), "device properties");
  return properties.name;
}

}  // namespace

std::unique_ptr<Backend> cuda() { return std::make_unique<Cuda>(); }

std::string Cuda::version() const {
  const int runtime = CUDART_VERSION;
  std::string text = fmt::format("{}, {}, CUDA {}.{}", cuda::blas_version(), cuda::dnn_version(),
                                 runtime / 1000, runtime % 1000 / 10);
  return gpu::count() > 0 ? text + ", " + gpu_name(0) : text;
}

std::string Cuda::unavailable() const {
  if (gpu::count() == 0) return gpu::unavailable();
  try {
    cuda::blas_version();
    return "";
  } catch (const Error& e) {
    return e.what();
  }
}

}  // namespace howmany::backends
