// SPDX-License-Identifier: Apache-2.0
// A graph of cuDNN's backend API: operations on tensors, which one engine computes together. Every
// call throws Error with cuDNN's message. Private to core/backends/cuda.
#pragma once

#include <cudnn.h>

#include <cstdint>
#include <deque>
#include <initializer_list>
#include <span>
#include <vector>

#include "core/backends/cuda/dnn/descriptor.h"

namespace howmany::cuda::dnn {

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
