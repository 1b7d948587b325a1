// SPDX-License-Identifier: Apache-2.0
#include "core/backends/reference/reference.h"

namespace howmany::backends {
namespace {

// Calls f(row, position, part, head, its head in x): part 0 is q, 1 is k, 2 is v.
template <typename F>
void each_head(const Tensor& t, GroupedHeads heads, F&& f) {
  const int64_t times = t.shape()[1], group = heads.count / heads.kv;
  for (int64_t row = 0; row < t.shape()[0] * times; ++row)
    for (int64_t part = 0; part < 3; ++part)
      for (int64_t head = 0; head < heads.count; ++head) {
        const int64_t kv_head = heads.count + (part - 1) * heads.kv + head / group;
        f(row, row % times, part, head, part == 0 ? head : kv_head);
      }
}

}  // namespace

void Reference::rotary(const Tensor& x, const Tensor& angles, GroupedHeads heads, Tensor& y) const {
  const int64_t size = angles.shape()[1], half = size / 2;
  by_type(x, [&]<typename T>(T) {
    each_head(x, heads, [&](int64_t row, int64_t t, int64_t part, int64_t head, int64_t from) {
      const T* const in = x.data<T>() + (row * (heads.count + 2 * heads.kv) + from) * size;
      const T* const cosines = angles.data<T>() + t * size;
      T* const out = y.mutable_data<T>() + ((3 * row + part) * heads.count + head) * size;
      for (int64_t c = 0; c < half; ++c) {
        const double cosine = part == 2 ? 1 : cosines[c], sine = part == 2 ? 0 : cosines[half + c];
        out[c] = static_cast<T>(in[c] * cosine - in[half + c] * sine);
        out[half + c] = static_cast<T>(in[half + c] * cosine + in[c] * sine);
      }
    });
  });
}

void Reference::rotary_backward(const Tensor& dy, const Tensor& angles, GroupedHeads heads,
                                Tensor& dx) const {
  const int64_t size = angles.shape()[1], half = size / 2;
  by_type(dy, [&]<typename T>(T) {
    Doubles sums = zeros(dx.numel());
    each_head(dy, heads, [&](int64_t row, int64_t t, int64_t part, int64_t head, int64_t to) {
      const T* const in = dy.data<T>() + ((3 * row + part) * heads.count + head) * size;
      const T* const cosines = angles.data<T>() + t * size;
      double* const out = sums.data() + (row * (heads.count + 2 * heads.kv) + to) * size;
      for (int64_t c = 0; c < half; ++c) {
        const double cosine = part == 2 ? 1 : cosines[c], sine = part == 2 ? 0 : cosines[half + c];
        out[c] += in[c] * cosine + in[half + c] * sine;
        out[half + c] += in[half + c] * cosine - in[c] * sine;
      }
    });
    store<T>(sums, dx);
  });
}

}  // namespace howmany::backends
