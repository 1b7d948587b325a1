// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <vector>

#include "core/backends/cuda/blas/blas.h"
#include "core/backends/cuda/blas/halves.h"
#include "core/backends/cuda/dnn/dnn.h"
#include "core/backends/cuda/dnn/graph.h"
#include "core/backends/cuda/dnn/graphs.h"
#include "core/backends/cuda/dnn/library.h"
#include "core/backends/cuda/dnn/plan.h"

namespace howmany::cuda {
namespace {

// The engines require 16-byte alignment.
bool can(const Attention& s, std::initializer_list<const Tensor*> tensors) {
  return s.size % kPad == 0 && dnn_is_opened() && std::ranges::all_of(tensors, [](const Tensor* t) {
           return t->dtype() == Dtype::bf16 && alignment_of(t->raw()) >= 16;
         });
}

// Returns false for cases that this version of cuDNN computes wrongly or does not support, as in
// NVIDIA's cudnn-frontend (node/sdpa_support_surface.h). Then our own products are used.
bool is_sound(const Attention& s, bool backward) {
  constexpr size_t kFirst = 9'10'02, kAnyLength = 9'15'01;
  constexpr int64_t kTile = 128, kMaxBackward = 256;
  const size_t version = dnn::library().cudnnGetVersion();
  if (version < kFirst) return false;
  const bool whole = s.times % kTile == 0 || version >= kAnyLength;
  return !backward || (whole && s.times > 1 && s.size <= kMaxBackward);
}

// `kind` must differ from the passes of convolutions.
std::vector<int64_t> key_of(const Attention& s, int64_t kind) {
  return {kind, s.samples, s.times, s.heads, s.size, s.causal ? 1 : 0};
}

// The values that a graph gets by value. Engines read them when they are enqueued.
struct Values {
  explicit Values(const Attention& s) : scale(1 / std::sqrt(static_cast<float>(s.size))) {}
  float one = 1, scale, masked = -std::numeric_limits<float>::infinity();
};

// Returns the pointer to q, k or v (which = 0, 1, 2) in rows of all three.
void* part(const Tensor& qkv, const Attention& s, int64_t which) {
  return const_cast<Bf16*>(qkv.data<Bf16>()) + which * s.heads * s.size;
}
void* place(const Tensor& t) { return const_cast<void*>(t.raw()); }

std::string described(const Attention& s, const char* pass) {
  return fmt::format("{} of attention, {} samples of {} tokens, {} heads of {}", pass, s.samples,
                     s.times, s.heads, s.size);
}

std::atomic<int64_t> room_for_scores = int64_t{512} << 20;

int64_t padded(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// The tensors of the samples from `first` on.
struct Gradients {
  const Tensor &qkv, &y, &lse, &dy;
  Tensor& dqkv;

  bool compute(const Attention& s, int64_t first, const OnDevice& on) const {
    Values values(s);
    Tensor carried;
    const int64_t begin = first * s.times * s.heads * s.size;
    const auto places = [&] {
      carried = Tensor::empty({s.samples * s.heads * s.times}, Dtype::f32, qkv.device());
      dqkv.mutable_raw();  // marks it as changed; its parts are written below
      dnn::Places all;
      const auto add_parts = [&](const Tensor& of) {
        for (int64_t i : {0, 1, 2}) all.push_back(static_cast<Bf16*>(part(of, s, i)) + 3 * begin);
      };
      add_parts(qkv);
      for (const Tensor* t : {&y, &dy}) all.push_back(static_cast<Bf16*>(place(*t)) + begin);
      all.push_back(static_cast<float*>(place(lse)) + first * s.heads * s.times);
      all.insert(all.end(), {&values.one, &values.scale});
      if (s.causal) all.push_back(&values.masked);
      all.push_back(carried.mutable_raw());
      add_parts(dqkv);
      return all;
    };
    const auto graph = [&] { return dnn::attention_backward_graph(s); };
    return dnn::compute({key_of(s, 11), true, graph, [&] { return described(s, "backward"); }},
                        places, qkv.device(), on);
  }
};

}  // namespace

// If dq is summed without atomics, cuDNN stores the scores' gradients in bf16, padded to whole
// tiles: the "dP workspace" of cudnn-frontend.
int64_t samples_at_once(const Attention& s) {
  const int64_t each = 2 * s.heads * padded(s.times, 64) * padded(s.times, 128);
  const int64_t most = std::max<int64_t>(1, room_for_scores / each);
  const int64_t parts = std::max<int64_t>(1, (s.samples + most - 1) / most);
  const int64_t even = (s.samples + parts - 1) / parts;
  if (even == s.samples || s.heads * s.times % 4 == 0) return even;
  return std::min(s.samples, std::max<int64_t>(4, even / 4 * 4));  // aligns row values to 16 bytes
}
void set_room_for_scores(int64_t bytes) { room_for_scores = bytes; }

bool dnn_attention(const Attention& s, const Tensor& qkv, Tensor& lse, Tensor& y,
                   const OnDevice& on) {
  if (!can(s, {&qkv, &y}) || !is_sound(s, false)) return false;
  Values values(s);
  const auto places = [&] {
    dnn::Places all{part(qkv, s, 0), part(qkv, s, 1), part(qkv, s, 2), &values.scale};
    if (s.causal) all.push_back(&values.masked);
    all.insert(all.end(), {lse.mutable_raw(), y.mutable_raw()});
    return all;
  };
  const auto graph = [&] { return dnn::attention_graph(s); };
  return dnn::compute({key_of(s, 10), true, graph, [&] { return described(s, "forward"); }}, places,
                      qkv.device(), on);
}

bool dnn_attention_backward(const Attention& s, const Tensor& qkv, const Tensor& y,
                            const Tensor& lse, const Tensor& dy, Tensor& dqkv, const OnDevice& on) {
  if (!can(s, {&qkv, &y, &dy, &dqkv}) || !is_sound(s, true)) return false;
  const Gradients gradients{qkv, y, lse, dy, dqkv};
  Attention some = s;
  for (int64_t first = 0; first < s.samples; first += some.samples) {
    some.samples = std::min(samples_at_once(s), s.samples - first);
    if (!gradients.compute(some, first, on)) return false;
  }
  return true;
}

}  // namespace howmany::cuda
