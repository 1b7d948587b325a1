// SPDX-License-Identifier: Apache-2.0
#include "core/backends/cuda/dnn/descriptor.h"

#include "core/backends/cuda/dnn/library.h"

namespace howmany::cuda::dnn {

Descriptor::Descriptor(cudnnBackendDescriptorType_t type)
    : made_(nullptr, library().cudnnBackendDestroyDescriptor) {
  cudnnBackendDescriptor_t made = nullptr;
  check(library().cudnnBackendCreateDescriptor(type, &made), "descriptor");
  made_.reset(made);
}

Descriptor& Descriptor::put(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                            size_t count, const void* values) {
  check(library().cudnnBackendSetAttribute(raw(), name, type, static_cast<int64_t>(count), values),
        "attribute");
  return *this;
}

Descriptor& Descriptor::refer(cudnnBackendAttributeName_t name, const Descriptor& other) {
  const cudnnBackendDescriptor_t to = other.raw();
  return put(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &to);
}

Descriptor& Descriptor::refer(cudnnBackendAttributeName_t name,
                              std::span<const cudnnBackendDescriptor_t> to) {
  return put(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, to.size(), to.data());
}

Descriptor& Descriptor::finish(const char* what) {
  check(library().cudnnBackendFinalize(raw()), what);
  return *this;
}

bool Descriptor::try_finish() {
  return library().cudnnBackendFinalize(raw()) == CUDNN_STATUS_SUCCESS;
}

size_t Descriptor::take(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                        size_t most, void* values) const {
  int64_t count = 0;
  check(library().cudnnBackendGetAttribute(raw(), name, type, static_cast<int64_t>(most), &count,
                                           most > 0 ? values : nullptr),
        "attribute");
  return static_cast<size_t>(count);
}

}  // namespace howmany::cuda::dnn
