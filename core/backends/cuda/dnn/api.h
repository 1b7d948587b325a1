// cuDNN's backend API. A descriptor is created, gets its attributes and is finalized; then other
// descriptors may refer to it. A graph consists of operations on tensors, which one engine computes
// together. Every call throws Error with cuDNN's message. Private to core/backends/cuda.
#pragma once

#include <cudnn.h>

#include <cstdint>
#include <deque>
#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

#include "core/host/shared_library.h"

namespace howmany::cuda::dnn {

#define HM_CUDNN_CALLS(X)          \
  X(cudnnGetVersion)               \
  X(cudnnGetErrorString)           \
  X(cudnnGetLastErrorString)       \
  X(cudnnCreate)                   \
  X(cudnnSetStream)                \
  X(cudnnBackendCreateDescriptor)  \
  X(cudnnBackendDestroyDescriptor) \
  X(cudnnBackendSetAttribute)      \
  X(cudnnBackendGetAttribute)      \
  X(cudnnBackendFinalize)          \
  X(cudnnBackendExecute)

struct Library : SharedLibrary {
  Library();
  HM_CUDNN_CALLS(HM_LIBRARY_CALL)
};
const Library& library();  // throws Error if it cannot be opened

void check(cudnnStatus_t status, const char* what);

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

struct Operand {  // a tensor's extents and strides in cuDNN's order: N C H W
  std::vector<int64_t> extents, strides;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  int64_t alignment = 16;  // bytes
  bool inside = false;     // virtual: passed between operations, never in memory
  bool by_value = false;   // its pointer is a host pointer
};
// f32 or bf16 data stored as [n,h,w,c].
Operand nhwc(int64_t n, int64_t h, int64_t w, int64_t c, cudnnDataType_t type, int64_t alignment);

struct Pointwise {
  cudnnPointwiseMode_t mode;
  cudnnDataType_t computed = CUDNN_DATA_FLOAT;
  int64_t axis = -1;  // for CUDNN_POINTWISE_GEN_INDEX
};

// Owns its descriptors, and finalizes each one that is added.
class Graph {
 public:
  Graph() = default;
  const Descriptor& tensor(const Operand& operand);
  const Descriptor& part(Descriptor description);
  void operation(Descriptor description);
  // These return y. Inputs of extent 1 are broadcast.
  const Descriptor& pointwise(const Pointwise& how, std::initializer_list<const Descriptor*> inputs,
                              const Descriptor& y);
  const Descriptor& matmul(const Descriptor& a, const Descriptor& b, const Descriptor& y);
  const Descriptor& reduce(cudnnReduceTensorOp_t how, const Descriptor& x, const Descriptor& y);
  const Descriptor& reshape(const Descriptor& x, const Descriptor& y);  // does not move data
  void finish(cudnnHandle_t handle);                                    // null: for no specific GPU
  const Descriptor& finished() const { return parts_.back(); }
  // The ids of the tensors in memory or passed by value, in the order in which they were added.
  std::span<const int64_t> ids() const { return ids_; }

 private:
  std::deque<Descriptor> parts_;
  std::vector<cudnnBackendDescriptor_t> operations_;
  std::vector<int64_t> ids_;
  int64_t tensors_ = 0;
};

}  // namespace howmany::cuda::dnn
