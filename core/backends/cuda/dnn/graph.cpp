// SPDX-License-Identifier: Apache-2.0
#include "core/backends/cuda/dnn/graph.h"

#include <array>
#include <utility>

namespace howmany::cuda::dnn {

Operand nhwc(int64_t n, int64_t h, int64_t w, int64_t c, cudnnDataType_t type, int64_t alignment) {
  return {{n, c, h, w}, {h * w * c, 1, w * c, c}, type, alignment};
}

const Descriptor& Graph::part(Descriptor description) {
  description.finish("description");
  return parts_.emplace_back(std::move(description));
}

const Descriptor& Graph::tensor(const Operand& operand) {
  const int64_t id = ++tensors_;
  if (!operand.inside) ids_.push_back(id);
  Descriptor made(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  made.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id)
      .set(CUDNN_ATTR_TENSOR_DATA_TYPE, operand.type)
      .set(CUDNN_ATTR_TENSOR_DIMENSIONS, std::span(operand.extents))
      .set(CUDNN_ATTR_TENSOR_STRIDES, std::span(operand.strides))
      .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, operand.alignment)
      .set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, operand.inside)
      .set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, operand.by_value);
  return part(std::move(made));
}

void Graph::operation(Descriptor description) {
  operations_.push_back(part(std::move(description)).raw());
}

const Descriptor& Graph::pointwise(const Pointwise& how,
                                   std::initializer_list<const Descriptor*> inputs,
                                   const Descriptor& y) {
  constexpr std::array kInputs{CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
                               CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
                               CUDNN_ATTR_OPERATION_POINTWISE_TDESC};
  Descriptor description(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  description.set(CUDNN_ATTR_POINTWISE_MODE, how.mode)
      .set(CUDNN_ATTR_POINTWISE_MATH_PREC, how.computed);
  if (how.axis >= 0) description.set(CUDNN_ATTR_POINTWISE_AXIS, how.axis);
  Descriptor made(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  made.refer(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, part(std::move(description)))
      .refer(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
  size_t i = 0;
  for (const Descriptor* const input : inputs) made.refer(kInputs.at(i++), *input);
  operation(std::move(made));
  return y;
}

const Descriptor& Graph::matmul(const Descriptor& a, const Descriptor& b, const Descriptor& y) {
  Descriptor how(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  how.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT);
  Descriptor made(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  made.refer(CUDNN_ATTR_OPERATION_MATMUL_ADESC, a)
      .refer(CUDNN_ATTR_OPERATION_MATMUL_BDESC, b)
      .refer(CUDNN_ATTR_OPERATION_MATMUL_CDESC, y)
      .refer(CUDNN_ATTR_OPERATION_MATMUL_DESC, part(std::move(how)));
  operation(std::move(made));
  return y;
}

const Descriptor& Graph::reduce(cudnnReduceTensorOp_t how, const Descriptor& x,
                                const Descriptor& y) {
  Descriptor description(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  description.set(CUDNN_ATTR_REDUCTION_OPERATOR, how)
      .set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT);
  Descriptor made(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  made.refer(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x)
      .refer(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y)
      .refer(CUDNN_ATTR_OPERATION_REDUCTION_DESC, part(std::move(description)));
  operation(std::move(made));
  return y;
}

const Descriptor& Graph::reshape(const Descriptor& x, const Descriptor& y) {
  Descriptor made(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
  made.refer(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x).refer(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y);
  operation(std::move(made));
  return y;
}

void Graph::finish(cudnnHandle_t handle) {
  Descriptor made(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  made.refer(CUDNN_ATTR_OPERATIONGRAPH_OPS, operations_);
  if (handle != nullptr) made.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, handle);
  part(std::move(made));
}

}  // namespace howmany::cuda::dnn
