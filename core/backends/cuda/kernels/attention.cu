// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "core/backends/cuda/blas/blas.h"
#include "core/backends/cuda/dnn/dnn.h"
#include "core/backends/cuda/kernels/cast.h"
#include "core/backends/cuda/kernels/pack.cuh"
#include "core/backends/cuda/runtime/cuda.h"

// Attention by cuDNN, or by blocks of query rows. The scores of all heads of a sample are one
// batched product. One kernel turns the scores of a group of samples into probabilities, in place.
// A second product multiplies them with the values. Backward recomputes them.
namespace howmany::backends {
namespace {

using cuda::block_max;
using cuda::block_sum;
using cuda::OnDevice;
using cuda::Pair;

constexpr int64_t kRows = 256;                 // per block
constexpr int64_t kScores = int64_t{4} << 20;  // per group: they fit the L2 cache of a Hopper GPU

// One matrix per head, in f32 or bf16. Rows are `stride` elements apart, heads `apart` elements.
struct Matrices {
  void* data;
  Dtype dtype;
  int64_t rows, columns, stride, apart;
  const Tensor* whole = nullptr;  // the tensor that contains them
  Matrices from(int64_t element) const {
    Matrices m = *this;
    m.data = static_cast<char*>(data) + element * static_cast<int64_t>(size_of(dtype));
    return m;
  }
  Matrices part(int64_t begin, int64_t end) const {
    Matrices m = from(begin * stride);
    m.rows = end - begin;
    return m;
  }
};

struct Sizes {
  Sizes(const Tensor& qkv, Heads h)
      : samples(qkv.shape()[0]),
        times(qkv.shape()[1]),
        width(qkv.shape()[2] / 3),
        heads(h.count),
        size(width / heads),
        group(std::clamp<int64_t>(kScores / (heads * std::min(kRows, times) * times), 1, samples)),
        causal(h.causal),
        scale(1 / std::sqrt(static_cast<float>(size))),
        device(qkv.device()) {}

  // Returns q, k or v (which = 0, 1, 2) of sample n.
  Matrices part(const Tensor& qkv, int64_t n, int64_t which) const {
    return all_of(qkv, 3 * width).from((n * times * 3 + which) * width);
  }
  Matrices of_y(const Tensor& y, int64_t n) const {
    return all_of(y, width).from(n * times * width);
  }
  cuda::Attention problem() const { return {samples, times, heads, size, causal}; }
  Tensor scratch() const {
    return Tensor::empty({group, heads, std::min(kRows, times), times}, Dtype::f32, device);
  }

  void multiply(float factor, const Matrices& a, bool transpose_a, const Matrices& b,
                bool transpose_b, bool accumulate, const Matrices& y) const {
    cuda::multiply({.a = {a.data, a.dtype, a.whole},
                    .b = {b.data, b.dtype, b.whole},
                    .y = {y.data, y.dtype},
                    .m = y.rows,
                    .n = y.columns,
                    .k = transpose_a ? a.rows : a.columns,
                    .transpose_a = transpose_a,
                    .transpose_b = transpose_b,
                    .accumulate = accumulate,
                    .factor = factor,
                    .strides = {a.stride, b.stride, y.stride},
                    .batch = heads,
                    .apart = {a.apart, b.apart, y.apart}},
                   device.index);
  }

  Matrices all_of(const Tensor& t, int64_t stride) const {
    return {const_cast<void*>(t.raw()), t.dtype(), times, size, stride, size, &t};
  }

  int64_t samples, times, width, heads, size, group;
  bool causal;
  float scale;
  Device device;
};

// Query rows [begin, end) of the samples [first, first + count), and the keys that they attend to.
struct Block {
  int64_t first, count, begin, end, keys;
  int64_t rows() const { return end - begin; }
  // Returns the scores of sample g of the group.
  Matrices of(const Sizes& s, float* scores, int64_t g) const {
    const int64_t each = rows() * keys;
    return {scores + g * s.heads * each, Dtype::f32, rows(), keys, keys, each};
  }
};

// Calls f(block) for all blocks. In a group it starts with the last block, which attends to every
// key: it writes the results to which other blocks add.
template <typename F>
void each_block(const Sizes& s, const F& f) {
  for (int64_t first = 0; first < s.samples; first += s.group)
    for (int64_t end = s.times; end > 0; end = (end - 1) / kRows * kRows)
      f(Block{first, std::min(s.group, s.samples - first), (end - 1) / kRows * kRows, end,
              s.causal ? end : s.times});
}

// Turns scores into probabilities, in place; masked ones become 0.
void softmax_rows(const Sizes& s, const Block& block, float* scores, float* lse,
                  const OnDevice& on) {
  float* const logs = lse + block.first * s.heads * s.times;
  const int64_t rows = block.rows(), keys = block.keys, begin = block.begin, times = s.times;
  const bool causal = s.causal;
  cuda::each_row(block.count * s.heads * rows, keys, on, [=] __device__(int64_t r) {
    const int64_t t = begin + r % rows, seen = causal ? t + 1 : keys;
    float* const row = scores + r * keys;
    float most = -INFINITY;
    for (int64_t j = threadIdx.x; j < seen; j += blockDim.x) most = fmaxf(most, row[j]);
    const float top = block_max(most);
    Pair mine{0, 0};
    for (int64_t j = threadIdx.x; j < seen; j += blockDim.x) mine.a += expf(row[j] - top);
    const float sum = block_sum(mine).a, share = 1 / sum;
    for (int64_t j = threadIdx.x; j < keys; j += blockDim.x)
      row[j] = j < seen ? expf(row[j] - top) * share : 0;
    if (threadIdx.x == 0) logs[r / rows * times + t] = top + logf(sum);
  });
}

struct Backward {
  const Tensor &qkv, &y, &lse, &dy, &dqkv;
};

// Recomputes probabilities from scores, and turns their gradients dp into those of the scores.
template <typename T>
void backward_rows(const Sizes& s, const Block& block, float* scores, float* dp, const Backward& in,
                   const OnDevice& on) {
  const float* const logs = in.lse.data<float>() + block.first * s.heads * s.times;
  const int64_t first = block.first * s.times * s.width;
  const T *const ys = in.y.data<T>() + first, *const dys = in.dy.data<T>() + first;
  const int64_t rows = block.rows(), keys = block.keys, begin = block.begin, times = s.times,
                heads = s.heads, size = s.size, width = s.width;
  const bool causal = s.causal;
  cuda::each_row(block.count * heads * rows, keys, on, [=] __device__(int64_t r) {
    const int64_t head = r / rows, t = begin + r % rows, seen = causal ? t + 1 : keys;
    const int64_t at = (head / heads * times + t) * width + head % heads * size;
    Pair mine{0, 0};
    for (int64_t c = threadIdx.x; c < size; c += blockDim.x)
      mine.a += static_cast<float>(ys[at + c]) * static_cast<float>(dys[at + c]);
    const float carried = block_sum(mine).a;
    const float log_sum = logs[head * times + t];
    float *const row = scores + r * keys, *const d = dp + r * keys;
    for (int64_t j = threadIdx.x; j < keys; j += blockDim.x) {
      row[j] = j < seen ? expf(row[j] - log_sum) : 0;
      d[j] = j < seen ? row[j] * (d[j] - carried) : 0;
    }
  });
}

void backward_products(const Sizes& s, const Block& block, const Backward& in, int64_t g, float* p,
                       float* ds) {
  const int64_t n = block.first + g;
  const bool add = block.end < s.times;
  const auto rows_of = [&](const Matrices& m) { return m.part(block.begin, block.end); };
  const auto keys_of = [&](const Tensor& qkv, int64_t which) {
    return s.part(qkv, n, which).part(0, block.keys);
  };
  const Matrices mine = block.of(s, p, g), dmine = block.of(s, ds, g);
  s.multiply(1, mine, true, rows_of(s.of_y(in.dy, n)), false, add, keys_of(in.dqkv, 2));
  s.multiply(s.scale, dmine, true, rows_of(s.part(in.qkv, n, 0)), false, add, keys_of(in.dqkv, 1));
  s.multiply(s.scale, dmine, false, keys_of(in.qkv, 1), false, false,
             rows_of(s.part(in.dqkv, n, 0)));
}

// Computes scores: a's query rows times the keys of part `which` of qkv.
void multiply_keys(const Sizes& s, const Block& block, float factor, const Matrices& a,
                   const Tensor& qkv, int64_t which, int64_t g, float* scores) {
  s.multiply(factor, a.part(block.begin, block.end), false,
             s.part(qkv, block.first + g, which).part(0, block.keys), true, false,
             block.of(s, scores, g));
}

}  // namespace

void Cuda::attention(const Tensor& qkv, Heads heads, Tensor& lse, Tensor& y) const {
  if (qkv.numel() == 0) return;
  const OnDevice on(qkv);
  const Sizes s(qkv, heads);
  if (cuda::dnn_attention(s.problem(), qkv, lse, y, on)) return;
  float* const logs = lse.mutable_data<float>();
  y.mutable_raw();  // marks it as changed; its parts are written below
  Tensor scratch = s.scratch();
  float* const scores = scratch.mutable_data<float>();
  each_block(s, [&](const Block& block) {
    for (int64_t g = 0; g < block.count; ++g)
      multiply_keys(s, block, s.scale, s.part(qkv, block.first + g, 0), qkv, 1, g, scores);
    softmax_rows(s, block, scores, logs, on);
    for (int64_t g = 0; g < block.count; ++g)
      s.multiply(1, block.of(s, scores, g), false,
                 s.part(qkv, block.first + g, 2).part(0, block.keys), false, false,
                 s.of_y(y, block.first + g).part(block.begin, block.end));
  });
}

void Cuda::attention_backward(const Tensor& qkv, const Tensor& y, const Tensor& lse,
                              const Tensor& dy, Heads heads, Tensor& dqkv) const {
  if (qkv.numel() == 0) return;
  const OnDevice on(qkv);
  const Sizes s(qkv, heads);
  if (cuda::dnn_attention_backward(s.problem(), qkv, y, lse, dy, dqkv, on)) return;
  // The blocks' sums are rounded once, after the last block.
  const bool rounds = dqkv.dtype() == Dtype::bf16;
  Tensor sums = rounds ? Tensor::empty(dqkv.shape(), Dtype::f32, dqkv.device()) : dqkv;
  sums.mutable_raw();  // marks it as changed; its parts are written below
  const Backward in{qkv, y, lse, dy, sums};
  Tensor scratch = s.scratch(), dscratch = s.scratch();
  float *const p = scratch.mutable_data<float>(), *const ds = dscratch.mutable_data<float>();
  each_block(s, [&](const Block& block) {
    for (int64_t g = 0; g < block.count; ++g) {
      multiply_keys(s, block, s.scale, s.part(in.qkv, block.first + g, 0), in.qkv, 1, g, p);
      multiply_keys(s, block, 1, s.of_y(in.dy, block.first + g), in.qkv, 2, g, ds);
    }
    cuda::by_element(dy.dtype(),
                     [&](auto e) { backward_rows<decltype(e)>(s, block, p, ds, in, on); });
    for (int64_t g = 0; g < block.count; ++g) backward_products(s, block, in, g, p, ds);
  });
  if (rounds)
    cuda::cast_to_halves({.data = sums.raw(), .rows = 1, .columns = sums.numel()},
                         dqkv.mutable_data<Bf16>(), 0, on);
}

}  // namespace howmany::backends
