#include <cmath>
#include <limits>
#include <vector>

#include "core/backends/cuda/cast.h"
#include "core/backends/cuda/dnn.h"
#include "core/backends/cuda/dnn_graphs.h"
#include "core/backends/cuda/dnn_plan.h"
#include "core/backends/cuda/halves.h"
#include "core/precision.h"

namespace howmany::cuda {
namespace {

bool can(const Attention& s) {
  return current_precision() == Precision::bf16 && s.size % kPad == 0 && dnn_is_opened();
}

// kind: apart from a convolution's pass
std::vector<int64_t> key_of(const Attention& s, int64_t kind) {
  return {kind, s.samples, s.times, s.heads, s.size, s.causal ? 1 : 0};
}

// What stands by value in a graph; engines read it when they are asked.
struct Values {
  explicit Values(const Attention& s) : scale(1 / std::sqrt(static_cast<float>(s.size))) {}
  float one = 1, scale, masked = -std::numeric_limits<float>::infinity();
};

// `which` of q, k and v in rows of all three.
void* part(const void* halves, const Attention& s, int64_t which) {
  return const_cast<uint16_t*>(static_cast<const uint16_t*>(halves)) + which * s.heads * s.size;
}

int64_t count(const Attention& s) { return s.samples * s.times * s.heads * s.size; }

void widen(const Tensor& halves, float* to, const OnDevice& on) {
  cast_from_halves(static_cast<const uint16_t*>(halves.raw()), halves.shape()[0], to, on);
}

}  // namespace

bool dnn_attention(const Attention& s, const Tensor& qkv, float* lse, float* y,
                   const OnDevice& on) {
  if (!can(s)) return false;
  Values values(s);
  Half in;  // which must last until the engine was asked
  Tensor out;
  const auto places = [&] {
    in = half_of(qkv, on);
    out = room_for_halves(count(s), qkv.device());
    dnn::Places all{part(in.data, s, 0), part(in.data, s, 1), part(in.data, s, 2), &values.scale};
    if (s.causal) all.push_back(&values.masked);
    all.insert(all.end(), {lse, out.mutable_raw()});
    return all;
  };
  const auto graph = [&] { return dnn::attention_graph(s); };
  if (!dnn::compute({key_of(s, 10), true, graph}, places, qkv.device(), on)) return false;
  widen(out, y, on);
  return true;
}

bool dnn_attention_backward(const Attention& s, const Tensor& qkv, const Tensor& y,
                            const float* lse, const Tensor& dy, float* dqkv, const OnDevice& on) {
  if (!can(s)) return false;
  Values values(s);
  Half in, result, gradient;
  Tensor carried, out;
  const auto places = [&] {
    in = half_of(qkv, on);
    result = half_of(y, on);
    gradient = half_of(dy, on);
    carried = Tensor::empty({s.samples * s.heads * s.times}, Dtype::f32, qkv.device());
    out = room_for_halves(3 * count(s), qkv.device());
    dnn::Places all{part(in.data, s, 0), part(in.data, s, 1), part(in.data, s, 2)};
    all.insert(all.end(), {const_cast<void*>(result.data), const_cast<void*>(gradient.data),
                           const_cast<float*>(lse), &values.one, &values.scale});
    if (s.causal) all.push_back(&values.masked);
    all.push_back(carried.mutable_raw());
    for (int64_t i : {0, 1, 2}) all.push_back(part(out.mutable_raw(), s, i));
    return all;
  };
  const auto graph = [&] { return dnn::attention_backward_graph(s); };
  if (!dnn::compute({key_of(s, 11), true, graph}, places, qkv.device(), on)) return false;
  widen(out, dqkv, on);
  return true;
}

}  // namespace howmany::cuda
