// SPDX-License-Identifier: Apache-2.0
#include "core/backends/cuda/dnn/graphs.h"

namespace howmany::cuda::dnn {
namespace {

// The descriptor type of a pass, and its attributes for the tensors.
struct Operation {
  cudnnBackendDescriptorType_t type;
  std::array<cudnnBackendAttributeName_t, 2> inputs;
  cudnnBackendAttributeName_t result, how, alpha, beta;
};

Operation operation_of(Pass pass) {
  switch (pass) {
    case Pass::forward:
      return {
          CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
          {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W},
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
    case Pass::backward_data:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY},
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    default:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
              {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY},
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
  }
}

Descriptor window_of(Window w) {
  const std::array padding{w.padding, w.padding}, stride{w.stride, w.stride};
  const std::array<int64_t, 2> dilation{1, 1};
  Descriptor made(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  made.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT)
      .set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION)
      .set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, int64_t{2})
      .set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, std::span(padding))
      .set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, std::span(padding))
      .set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, std::span(stride))
      .set(CUDNN_ATTR_CONVOLUTION_DILATIONS, std::span(dilation));
  return made;
}

void add_convolution(Graph& graph, const ConvolutionProblem& p, const Descriptor& a,
                     const Descriptor& b, const Descriptor& result) {
  const Operation names = operation_of(p.pass);
  Descriptor made(names.type);
  made.refer(names.inputs[0], a)
      .refer(names.inputs[1], b)
      .refer(names.result, result)
      .refer(names.how, graph.part(window_of(p.sizes.window)))
      .set(names.alpha, 1.0F)
      .set(names.beta, 0.0F);
  graph.operation(std::move(made));
}

}  // namespace

// The inputs and the result of a pass. Weights [out,K,K,C] have the layout of images.
std::array<Operand, 3> operands_of(const ConvolutionProblem& p) {
  const cudnnDataType_t type = p.halves ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
  const Convolution& s = p.sizes;
  const Operand x = nhwc(s.images, s.height, s.width, s.channels, type, 16);
  const Operand w = nhwc(s.out, s.window.size, s.window.size, s.channels, type, 16);
  const Operand y = nhwc(s.images, s.out_height, s.out_width, s.out, type, 16);
  std::array<Operand, 3> all = p.pass == Pass::forward         ? std::array{x, w, y}
                               : p.pass == Pass::backward_data ? std::array{w, y, x}
                                                               : std::array{x, y, w};
  all[2].type = p.half_result ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
  for (size_t i = 0; i < all.size(); ++i) all[i].alignment = p.alignments[i];
  return all;
}

Graph graph_of(const ConvolutionProblem& p) {
  const std::array<Operand, 3> all = operands_of(p);
  Graph graph;
  const Descriptor &a = graph.tensor(all[0]), &b = graph.tensor(all[1]);
  if (p.halves == p.half_result && !p.bias) {
    add_convolution(graph, p, a, b, graph.tensor(all[2]));
    return graph;
  }
  Operand summed = all[2];
  summed.type = CUDNN_DATA_FLOAT;
  summed.inside = true;
  const Descriptor& sum = graph.tensor(summed);
  add_convolution(graph, p, a, b, sum);
  if (!p.bias) {
    graph.pointwise({CUDNN_POINTWISE_IDENTITY}, {&sum}, graph.tensor(all[2]));
    return graph;
  }
  const Descriptor& bias =
      graph.tensor(nhwc(1, 1, 1, p.sizes.out, CUDNN_DATA_FLOAT, p.bias_alignment));
  graph.pointwise({CUDNN_POINTWISE_ADD}, {&sum, &bias}, graph.tensor(all[2]));
  return graph;
}

}  // namespace howmany::cuda::dnn
