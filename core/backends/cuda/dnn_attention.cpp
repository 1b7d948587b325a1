#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <vector>

#include "core/backends/cuda/blas.h"
#include "core/backends/cuda/dnn.h"
#include "core/backends/cuda/dnn_graphs.h"
#include "core/backends/cuda/dnn_plan.h"
#include "core/backends/cuda/halves.h"

namespace howmany::cuda {
namespace {

// The engines take what lies by 16 bytes.
bool can(const Attention& s, std::initializer_list<const Tensor*> tensors) {
  return s.size % kPad == 0 && dnn_is_opened() && std::ranges::all_of(tensors, [](const Tensor* t) {
           return t->dtype() == Dtype::bf16 && alignment_of(t->raw()) >= 16;
         });
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
void* part(const Tensor& qkv, const Attention& s, int64_t which) {
  return const_cast<Bf16*>(qkv.data<Bf16>()) + which * s.heads * s.size;
}
void* place(const Tensor& t) { return const_cast<void*>(t.raw()); }

}  // namespace

bool dnn_attention(const Attention& s, const Tensor& qkv, Tensor& lse, Tensor& y,
                   const OnDevice& on) {
  if (!can(s, {&qkv, &y})) return false;
  Values values(s);
  const auto places = [&] {
    dnn::Places all{part(qkv, s, 0), part(qkv, s, 1), part(qkv, s, 2), &values.scale};
    if (s.causal) all.push_back(&values.masked);
    all.insert(all.end(), {lse.mutable_raw(), y.mutable_raw()});
    return all;
  };
  const auto graph = [&] { return dnn::attention_graph(s); };
  return dnn::compute({key_of(s, 10), true, graph}, places, qkv.device(), on);
}

bool dnn_attention_backward(const Attention& s, const Tensor& qkv, const Tensor& y,
                            const Tensor& lse, const Tensor& dy, Tensor& dqkv, const OnDevice& on) {
  if (!can(s, {&qkv, &y, &dy, &dqkv})) return false;
  Values values(s);
  Tensor carried;
  const auto places = [&] {
    carried = Tensor::empty({s.samples * s.heads * s.times}, Dtype::f32, qkv.device());
    dnn::Places all{part(qkv, s, 0), part(qkv, s, 1), part(qkv, s, 2)};
    all.insert(all.end(), {place(y), place(dy), place(lse), &values.one, &values.scale});
    if (s.causal) all.push_back(&values.masked);
    all.push_back(carried.mutable_raw());
    dqkv.mutable_raw();  // written by its parts
    for (int64_t i : {0, 1, 2}) all.push_back(part(dqkv, s, i));
    return all;
  };
  const auto graph = [&] { return dnn::attention_backward_graph(s); };
  return dnn::compute({key_of(s, 11), true, graph}, places, qkv.device(), on);
}

}  // namespace howmany::cuda
