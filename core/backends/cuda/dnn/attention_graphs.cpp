// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "core/backends/cuda/dnn/graphs.h"

// The order of operations is that of the composite SDPA nodes of NVIDIA's cudnn-frontend.
namespace howmany::cuda::dnn {
namespace {

using Node = const Descriptor&;

class Builder {
 public:
  explicit Builder(const Attention& s) : s_(s), width_(s.heads * s.size) {}

  // The matrices [T,size] of all heads, with rows `rows` widths apart; turned(): transposed.
  Node matrices(int64_t rows) { return graph.tensor(half(s_.times, s_.size, rows * width_, 1)); }
  Node turned(int64_t rows) { return graph.tensor(half(s_.size, s_.times, 1, rows * width_)); }
  Node turned_back(Node columns, int64_t rows) {
    Operand operand = half(s_.times, s_.size, rows * width_, 1);
    operand.inside = true;
    return graph.reshape(columns, graph.tensor(operand));
  }
  Node scalar() {
    return graph.tensor({.extents = {1, 1, 1, 1}, .strides = {1, 1, 1, 1}, .by_value = true});
  }
  Node row_values(bool inside) { return graph.tensor(dense(s_.times, 1, inside)); }
  Node products() { return graph.tensor(dense(s_.times, s_.size, true)); }
  Node scores(cudnnDataType_t type = CUDNN_DATA_FLOAT) {
    Operand operand = dense(s_.times, s_.times, true);
    operand.type = type;
    return graph.tensor(operand);
  }
  Node turned(Node of_scores) {
    Operand operand = dense(s_.times, s_.times, true);
    std::swap(operand.strides[2], operand.strides[3]);
    operand.type = CUDNN_DATA_BFLOAT16;
    return graph.reshape(of_scores, graph.tensor(operand));
  }

  Node apply(cudnnPointwiseMode_t mode, Node x) { return graph.pointwise({mode}, {&x}, scores()); }
  Node apply(cudnnPointwiseMode_t mode, Node x, Node b) {
    return graph.pointwise({mode}, {&x, &b}, scores());
  }
  // Returns `of_scores` with `masked` where row < column.
  Node masked(Node of_scores, Node masked) {
    const auto index = [&](int64_t axis) -> Node {
      return graph.pointwise({.mode = CUDNN_POINTWISE_GEN_INDEX, .axis = axis}, {&of_scores},
                             scores(CUDNN_DATA_INT32));
    };
    Node row = index(2), column = index(3);
    Node seen = graph.pointwise({CUDNN_POINTWISE_CMP_GE, CUDNN_DATA_BOOLEAN}, {&row, &column},
                                scores(CUDNN_DATA_BOOLEAN));
    return graph.pointwise({CUDNN_POINTWISE_BINARY_SELECT}, {&of_scores, &masked, &seen}, scores());
  }

  Graph graph;

 private:
  Operand half(int64_t rows, int64_t columns, int64_t down, int64_t right) const {
    const int64_t sample = s_.times * std::max(down, right);
    return {
        {s_.samples, s_.heads, rows, columns}, {sample, s_.size, down, right}, CUDNN_DATA_BFLOAT16};
  }
  Operand dense(int64_t rows, int64_t columns, bool inside) const {
    const int64_t each = rows * columns;
    return {.extents = {s_.samples, s_.heads, rows, columns},
            .strides = {s_.heads * each, each, columns, 1},
            .inside = inside};
  }

  Attention s_;
  int64_t width_;
};

}  // namespace

Graph attention_graph(const Attention& s) {
  Builder b(s);
  Node q = b.matrices(3), k = b.turned(3), v = b.matrices(3), scale = b.scalar();
  const Descriptor* const least = s.causal ? &b.scalar() : nullptr;
  Node lse = b.row_values(false), y = b.matrices(1);
  const Descriptor* p = &b.apply(CUDNN_POINTWISE_MUL, b.graph.matmul(q, k, b.scores()), scale);
  if (s.causal) p = &b.masked(*p, *least);
  Node top = b.graph.reduce(CUDNN_REDUCE_TENSOR_MAX, *p, b.row_values(true));
  Node e = b.apply(CUDNN_POINTWISE_EXP, b.apply(CUDNN_POINTWISE_SUB, *p, top));
  Node sum = b.graph.reduce(CUDNN_REDUCE_TENSOR_ADD, e, b.row_values(true));
  Node log_sum = b.graph.pointwise({CUDNN_POINTWISE_LOG}, {&sum}, b.row_values(true));
  b.graph.pointwise({CUDNN_POINTWISE_ADD}, {&top, &log_sum}, lse);
  Node shares = b.graph.pointwise({CUDNN_POINTWISE_DIV}, {&e, &sum}, b.scores(CUDNN_DATA_BFLOAT16));
  b.graph.matmul(shares, v, y);
  return std::move(b.graph);
}

Graph attention_backward_graph(const Attention& s) {
  Builder b(s);
  Node q = b.matrices(3), k = b.turned(3), v = b.turned(3), y = b.matrices(1), dy = b.matrices(1);
  Node lse = b.row_values(false), one = b.scalar(), scale = b.scalar();
  const Descriptor* const least = s.causal ? &b.scalar() : nullptr;
  Node carried = b.row_values(false), dq = b.matrices(3), dk = b.matrices(3), dv = b.matrices(3);
  Node dots = b.graph.pointwise({CUDNN_POINTWISE_MUL}, {&dy, &y}, b.products());
  Node dot = b.graph.reduce(CUDNN_REDUCE_TENSOR_ADD, dots, b.row_values(true));
  b.graph.pointwise({CUDNN_POINTWISE_MUL}, {&dot, &one}, carried);
  Node scaled = b.apply(CUDNN_POINTWISE_MUL, b.graph.matmul(q, k, b.scores()), scale);
  const Descriptor* p = &b.apply(CUDNN_POINTWISE_SUB, scaled, lse);
  if (s.causal) p = &b.masked(*p, *least);
  Node e = b.apply(CUDNN_POINTWISE_EXP, *p);
  b.graph.matmul(b.turned(e), dy, dv);
  Node dp = b.apply(CUDNN_POINTWISE_SUB, b.graph.matmul(dy, v, b.scores()), carried);
  Node ds = b.apply(CUDNN_POINTWISE_MUL, b.apply(CUDNN_POINTWISE_MUL, dp, e), scale);
  b.graph.matmul(b.turned(ds), q, dk);
  b.graph.matmul(ds, b.turned_back(k, 3), dq);
  return std::move(b.graph);
}

}  // namespace howmany::cuda::dnn
