// The graphs that the cuda backend has cuDNN compute. Private to core/backends/cuda.
#pragma once

#include <array>

#include "core/backends/cuda/dnn/api.h"
#include "core/backends/cuda/dnn/dnn.h"

namespace howmany::cuda::dnn {

enum class Pass { forward, backward_data, backward_filter };

// Tensors in memory, in their order: forward x, w, y; backward_data w, dy, dx; backward_filter x,
// dy, dw; with a bias [out], always f32, it stands before the result. Inputs are f32 or, halves,
// bf16; of these the result is bf16 or f32, which only a graph with a second operation can have.
struct ConvolutionProblem {
  Pass pass;
  Convolution sizes;
  bool halves = false, half_result = false, bias = false;
  std::array<int64_t, 3> alignments{16, 16, 16};  // of the inputs and the result, in bytes
  int64_t bias_alignment = 16;
};
std::array<Operand, 3> operands_of(const ConvolutionProblem& problem);  // without the bias
Graph graph_of(const ConvolutionProblem& problem);                      // not finished

// As FlashAttention does it: scores and probabilities [N,heads,T,T] stay inside (but the scores'
// gradients, see samples_at_once), and engines know the operations by their order. All is bf16 but
// lse, f32. Tensors in their order: forward q, k and v (of qkv), scale and, when causal, what
// stands for a masked score, both by value; lse, y. Backward q, k, v, y, dy, lse, a 1, scale and
// the masked score by value, [N,heads,T] of f32 to work in, dq, dk and dv (of dqkv). Of the ways to
// add up dq it is the one without atomics.
Graph attention_graph(const Attention& sizes);
Graph attention_backward_graph(const Attention& sizes);

}  // namespace howmany::cuda::dnn
