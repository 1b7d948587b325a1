// SPDX-License-Identifier: Apache-2.0
#include "core/backends/cuda/dnn/library.h"

#include <array>
#include <string>

#include "core/base/error.h"

namespace howmany::cuda::dnn {

Library::Library()
    : SharedLibrary("libcudnn.so." + std::to_string(CUDNN_MAJOR), HM_CUDNN_LIBRARY) {}

const Library& library() {
  static const Library cudnn;
  return cudnn;
}

void check(cudnnStatus_t status, const char* what) {
  if (status == CUDNN_STATUS_SUCCESS) [[likely]]
    return;
  std::array<char, 1024> why{};
  library().cudnnGetLastErrorString(why.data(), why.size());
  throw Error(fmt::format("[cuda] cuDNN's {}: {} ({})", what, library().cudnnGetErrorString(status),
                          why.data()));
}

}  // namespace howmany::cuda::dnn
