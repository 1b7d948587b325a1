// SPDX-License-Identifier: Apache-2.0
// The cuDNN graphs of the cuda backend. Private to core/backends/cuda.
#pragma once

#include <array>

#include "core/backends/cuda/dnn/dnn.h"
#include "core/backends/cuda/dnn/graph.h"

namespace howmany::cuda::dnn {

enum class Pass { forward, backward_data, backward_filter };

// Order of the tensors in memory: forward x, w, y; backward_data w, dy, dx; backward_filter x, dy,
// dw. A bias [out], always f32, comes before the result. Inputs are f32, or bf16 if `halves` is
// true. With bf16 inputs the result is bf16 or f32; f32 requires a second operation in the graph.
struct ConvolutionProblem {
  Pass pass;
  Convolution sizes;
  bool halves = false, half_result = false, bias = false;
  std::array<int64_t, 3> alignments{16, 16, 16};  // of the inputs and the result, in bytes
  int64_t bias_alignment = 16;
};
std::array<Operand, 3> operands_of(const ConvolutionProblem& problem);  // without the bias
Graph graph_of(const ConvolutionProblem& problem);                      // not finished

// As FlashAttention: scores and probabilities [N,heads,T,T] are not stored, except for the scores'
// gradients (see samples_at_once). Engines recognize the pattern by the order of the operations.
// Why. PyTorch trains transformers in bf16 with such kernels. With products and softmax instead,
// the
//   step times and peak memory that howmany measures would not be those of a user's model.
// Dtypes. All tensors are bf16, except for lse, which is f32.
// Forward tensors, in order. q, k and v (parts of qkv); by value scale and, if causal, the masked
//   score; lse, y.
// Backward tensors, in order. q, k, v, y, dy, lse; by value 1, scale and the masked score; an f32
//   workspace [N,heads,T]; dq, dk and dv (parts of dqkv). dq is summed without atomics.
Graph attention_graph(const Attention& sizes);
Graph attention_backward_graph(const Attention& sizes);

}  // namespace howmany::cuda::dnn
