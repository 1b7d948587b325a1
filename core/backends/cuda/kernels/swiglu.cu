// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "core/backends/cuda/kernels/pack.cuh"
#include "core/backends/cuda/runtime/cuda.h"

namespace howmany::backends {
namespace {

using cuda::by_16;
using cuda::by_element;
using cuda::Divisor;
using cuda::each_lane;
using cuda::each_pack;
using cuda::kLanes;
using cuda::load;
using cuda::OnDevice;
using cuda::store;

// Packs must not cross a row.
template <typename T, typename... Elements>
bool fit(int64_t width, const Elements*... elements) {
  return width % kLanes<T> == 0 && by_16(elements...);
}

template <typename T>
void gate(const Tensor& x, Tensor& y) {
  const OnDevice on(x);
  const int64_t width = y.shape()[-1];
  const Divisor row(width);
  const T* const in = x.data<T>();
  T* const out = y.mutable_data<T>();
  each_pack<kLanes<T>>(
      y.numel(), fit<T>(width, in, out), on, [=] __device__(int64_t i, auto lanes) {
        const int64_t at = i + row(i) * width;
        const auto g = load(in + at, lanes), v = load(in + at + width, lanes);
        store(out + i,
              each_lane(lanes, [&](int l) { return g.at[l] / (1 + expf(-g.at[l])) * v.at[l]; }));
      });
}

template <typename T>
void gate_backward(const Tensor& x, const Tensor& dy, Tensor& dx) {
  const OnDevice on(x);
  const int64_t width = dy.shape()[-1];
  const Divisor row(width);
  const T *const in = x.data<T>(), *const d = dy.data<T>();
  T* const out = dx.mutable_data<T>();
  each_pack<kLanes<T>>(
      dy.numel(), fit<T>(width, in, d, out), on, [=] __device__(int64_t i, auto lanes) {
        const int64_t at = i + row(i) * width;
        const auto g = load(in + at, lanes), v = load(in + at + width, lanes),
                   dv = load(d + i, lanes);
        store(out + at, each_lane(lanes, [&](int l) {
                const float s = 1 / (1 + expf(-g.at[l]));
                return dv.at[l] * v.at[l] * (s + g.at[l] * s * (1 - s));
              }));
        store(out + at + width,
              each_lane(lanes, [&](int l) { return dv.at[l] * g.at[l] / (1 + expf(-g.at[l])); }));
      });
}

}  // namespace

void Cuda::swiglu(const Tensor& x, Tensor& y) const {
  by_element(x.dtype(), [&](auto e) { gate<decltype(e)>(x, y); });
}

void Cuda::swiglu_backward(const Tensor& x, const Tensor& dy, Tensor& dx) const {
  by_element(x.dtype(), [&](auto e) { gate_backward<decltype(e)>(x, dy, dx); });
}

}  // namespace howmany::backends
