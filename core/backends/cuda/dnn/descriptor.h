// SPDX-License-Identifier: Apache-2.0
// A descriptor of cuDNN's backend API. It is created, gets its attributes and is finalized; then
// other descriptors may refer to it. Every call throws Error with cuDNN's message. Private to
// core/backends/cuda.
#pragma once

#include <cudnn.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace howmany::cuda::dnn {

template <typename T>
constexpr cudnnBackendAttributeType_t kTypeOf = {};  // the cuDNN type of an attribute's elements
#define HM_CUDNN_TYPE(type, name) \
  template <>                     \
  inline constexpr cudnnBackendAttributeType_t kTypeOf<type> = CUDNN_TYPE_##name;
HM_CUDNN_TYPE(bool, BOOLEAN)
HM_CUDNN_TYPE(char, CHAR)
HM_CUDNN_TYPE(float, FLOAT)
HM_CUDNN_TYPE(int64_t, INT64)
HM_CUDNN_TYPE(void*, VOID_PTR)
HM_CUDNN_TYPE(cudnnHandle_t, HANDLE)
HM_CUDNN_TYPE(cudnnDataType_t, DATA_TYPE)
HM_CUDNN_TYPE(cudnnBackendHeurMode_t, HEUR_MODE)
HM_CUDNN_TYPE(cudnnConvolutionMode_t, CONVOLUTION_MODE)
HM_CUDNN_TYPE(cudnnPointwiseMode_t, POINTWISE_MODE)
HM_CUDNN_TYPE(cudnnReduceTensorOp_t, REDUCTION_OPERATOR_TYPE)
HM_CUDNN_TYPE(cudnnBackendNumericalNote_t, NUMERICAL_NOTE)
HM_CUDNN_TYPE(cudnnBackendBehaviorNote_t, BEHAVIOR_NOTE)
#undef HM_CUDNN_TYPE

class Descriptor {
 public:
  explicit Descriptor(cudnnBackendDescriptorType_t type);

  template <typename T>
  Descriptor& set(cudnnBackendAttributeName_t name, const T& value) {
    return set(name, std::span(&value, 1));
  }
  template <typename T, size_t kCount>
  Descriptor& set(cudnnBackendAttributeName_t name, std::span<T, kCount> values) {
    return put(name, kTypeOf<std::remove_const_t<T>>, values.size(), values.data());
  }
  Descriptor& refer(cudnnBackendAttributeName_t name, const Descriptor& other);
  Descriptor& refer(cudnnBackendAttributeName_t name, std::span<const cudnnBackendDescriptor_t> to);
  Descriptor& finish(const char* what);
  bool try_finish();  // returns false if cuDNN or this machine does not support it

  // Returns at most `most` values. If `most` is 0, the size of the result is the number available.
  template <typename T>
  std::vector<T> get(cudnnBackendAttributeName_t name, size_t most) const {
    std::vector<T> values(most);
    values.resize(take(name, kTypeOf<T>, most, values.data()));
    return values;
  }
  size_t take(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, size_t most,
              void* values) const;
  cudnnBackendDescriptor_t raw() const { return made_.get(); }

 private:
  Descriptor& put(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, size_t count,
                  const void* values);
  std::unique_ptr<void, cudnnStatus_t (*)(cudnnBackendDescriptor_t)> made_;
};

}  // namespace howmany::cuda::dnn
