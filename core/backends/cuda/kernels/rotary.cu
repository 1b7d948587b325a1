// SPDX-License-Identifier: Apache-2.0
#include "core/backends/cuda/kernels/pack.cuh"
#include "core/backends/cuda/runtime/cuda.h"

// A thread handles channels c and c + half of one head.
namespace howmany::backends {
namespace {

using cuda::by_element;
using cuda::Divisor;
using cuda::OnDevice;
using cuda::rounded;

struct Turn {
  float cosine, sine;
};

struct HeadLayout {
  HeadLayout(const Tensor& t, const Tensor& angles, GroupedHeads h)
      : table(angles.data<float>()),
        rows(t.shape()[0] * t.shape()[1]),
        half(angles.shape()[1] / 2),
        count(h.count),
        kv(h.kv),
        of_x(h.count + 2 * h.kv),
        of_y(3 * h.count),
        by_half(half),
        by_times(t.shape()[1]),
        by_x(of_x),
        by_y(of_y),
        by_count(h.count),
        by_kv(h.kv),
        by_group(h.count / h.kv) {}

  // v is not rotated.
  __device__ Turn turn(int64_t row, int64_t part, int64_t c) const {
    if (part == 2) return {1, 0};
    const float* const at = table + by_times.rest(row) * 2 * half + c;
    return {at[0], at[half]};
  }

  const float* table;
  int64_t rows, half, count, kv, of_x, of_y;  // of_x: heads in a row of x
  Divisor by_half, by_times, by_x, by_y, by_count, by_kv, by_group;
};

template <typename T>
void rotate(const Tensor& x, const Tensor& angles, GroupedHeads heads, Tensor& y) {
  const OnDevice on(x);
  const HeadLayout l(x, angles, heads);
  const T* const in = x.data<T>();
  T* const out = y.mutable_data<T>();
  cuda::each(l.rows * l.of_y * l.half, on, [=] __device__(int64_t i) {
    const int64_t c = l.by_half.rest(i), head = l.by_half(i), row = l.by_y(head);
    const int64_t in_row = l.by_y.rest(head), part = l.by_count(in_row);
    const int64_t query = l.by_count.rest(in_row);
    const int64_t from = part == 0 ? query : l.count + (part - 1) * l.kv + l.by_group(query);
    const Turn turn = l.turn(row, part, c);
    const T* const a = in + (row * l.of_x + from) * 2 * l.half + c;
    T* const to = out + head * 2 * l.half + c;
    const auto u = static_cast<float>(a[0]), v = static_cast<float>(a[l.half]);
    to[0] = rounded<T>(u * turn.cosine - v * turn.sine);
    to[l.half] = rounded<T>(v * turn.cosine + u * turn.sine);
  });
}

template <typename T>
void rotate_back(const Tensor& dy, const Tensor& angles, GroupedHeads heads, Tensor& dx) {
  const OnDevice on(dy);
  const HeadLayout l(dy, angles, heads);
  const int64_t group = heads.count / heads.kv;
  const T* const in = dy.data<T>();
  T* const out = dx.mutable_data<T>();
  cuda::each(l.rows * l.of_x * l.half, on, [=] __device__(int64_t i) {
    const int64_t c = l.by_half.rest(i), head = l.by_half(i), row = l.by_x(head);
    const int64_t in_row = l.by_x.rest(head), shared = in_row - l.count;
    const int64_t part = shared < 0 ? 0 : 1 + l.by_kv(shared);
    const int64_t first =
        part == 0 ? in_row : part * l.count + (shared - (part - 1) * l.kv) * group;
    const T* const a = in + (row * l.of_y + first) * 2 * l.half + c;
    float u = 0, v = 0;
    for (int64_t k = 0; k < (part == 0 ? 1 : group); ++k) {
      u += static_cast<float>(a[2 * k * l.half]);
      v += static_cast<float>(a[(2 * k + 1) * l.half]);
    }
    const Turn turn = l.turn(row, part, c);
    T* const to = out + head * 2 * l.half + c;
    to[0] = rounded<T>(u * turn.cosine + v * turn.sine);
    to[l.half] = rounded<T>(v * turn.cosine - u * turn.sine);
  });
}

}  // namespace

void Cuda::rotary(const Tensor& x, const Tensor& angles, GroupedHeads heads, Tensor& y) const {
  by_element(x.dtype(), [&](auto e) { rotate<decltype(e)>(x, angles, heads, y); });
}

void Cuda::rotary_backward(const Tensor& dy, const Tensor& angles, GroupedHeads heads,
                           Tensor& dx) const {
  by_element(dy.dtype(), [&](auto e) { rotate_back<decltype(e)>(dy, angles, heads, dx); });
}

}  // namespace howmany::backends
