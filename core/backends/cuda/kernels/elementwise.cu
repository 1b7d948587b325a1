// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "core/backends/cuda/kernels/math.cuh"
#include "core/backends/cuda/kernels/pack.cuh"
#include "core/backends/cuda/runtime/cuda.h"
#include "core/tensor/rng.h"

namespace howmany::backends {
namespace {

using cuda::by_16;
using cuda::by_element;
using cuda::each_lane;
using cuda::each_pack;
using cuda::kLanes;
using cuda::load;
using cuda::OnDevice;
using cuda::store;

template <typename T>
void activate(const Tensor& x, Activation act, Tensor& y) {
  const OnDevice on(x);
  const T* const in = x.data<T>();
  T* const out = y.mutable_data<T>();
  each_pack<kLanes<T>>(x.numel(), by_16(in, out), on, [=] __device__(int64_t i, auto lanes) {
    const auto v = load(in + i, lanes);
    store(out + i, each_lane(lanes, [&](int l) { return cuda::activate(v.at[l], act); }));
  });
}

template <typename T>
void slope(const Tensor& kept, const Tensor& dy, Activation act, Tensor& dx) {
  const OnDevice on(dy);
  const T *const k = kept.data<T>(), *const d = dy.data<T>();
  T* const out = dx.mutable_data<T>();
  each_pack<kLanes<T>>(dy.numel(), by_16(k, d, out), on, [=] __device__(int64_t i, auto lanes) {
    const auto at = load(k + i, lanes), dv = load(d + i, lanes);
    store(out + i, each_lane(lanes, [&](int l) {
            return dv.at[l] * cuda::activation_slope(at.at[l], act);
          }));
  });
}

template <typename T>
void join(const Tensor& a, const Tensor& b, Activation act, Tensor& y) {
  const OnDevice on(a);
  const T *const left = a.data<T>(), *const right = b.data<T>();
  T* const out = y.mutable_data<T>();
  each_pack<kLanes<T>>(
      a.numel(), by_16(left, right, out), on, [=] __device__(int64_t i, auto lanes) {
        const auto u = load(left + i, lanes), v = load(right + i, lanes);
        store(out + i,
              each_lane(lanes, [&](int l) { return cuda::activate(u.at[l] + v.at[l], act); }));
      });
}

// The random bits are those of core/tensor/rng.h, compiled for the device.
template <typename T>
void drop(const Tensor& x, double p, DropoutKey key, Tensor& y) {
  const OnDevice on(x);
  const T* const in = x.data<T>();
  T* const out = y.mutable_data<T>();
  const auto bound = static_cast<uint64_t>(std::ceil(p * 0x1p32));  // drops if bits < p 2^32
  const auto kept = static_cast<float>(1 / (1 - p));
  const bool blocks = key.first_element % 4 == 0;  // packs begin at a block of bits
  each_pack<kLanes<T>>(
      x.numel(), by_16(in, out) && blocks, on, [=] __device__(int64_t i, auto lanes) {
        const auto v = load(in + i, lanes);
        const Rng rng(key.drawn(), key.stream);
        std::array<uint32_t, 4> bits{};
        store(out + i, each_lane(lanes, [&](int l) {
                const auto element = static_cast<uint64_t>(key.first_element + i + l);
                if (l % 4 == 0) bits = rng.bits4(element / 4);
                const auto at =
                    decltype(lanes)::count == 1 ? element % 4 : static_cast<uint64_t>(l % 4);
                return bits[at] < bound ? 0.0f : v.at[l] * kept;
              }));
      });
}

template <typename T>
void add_to(double alpha, const Tensor& x, Tensor& y) {
  const OnDevice on(y);
  const T* const in = x.data<T>();
  T* const out = y.mutable_data<T>();
  const auto factor = static_cast<float>(alpha);
  each_pack<kLanes<T>>(x.numel(), by_16(in, out), on, [=] __device__(int64_t i, auto lanes) {
    const auto v = load(in + i, lanes), sum = load(out + i, lanes);
    store(out + i, each_lane(lanes, [&](int l) { return sum.at[l] + factor * v.at[l]; }));
  });
}

// Losses are f64.
void add_doubles(double alpha, const Tensor& x, Tensor& y) {
  const OnDevice on(y);
  const double* const in = x.data<double>();
  double* const out = y.mutable_data<double>();
  cuda::each(x.numel(), on, [=] __device__(int64_t i) { out[i] += alpha * in[i]; });
}

}  // namespace

void Cuda::activation(const Tensor& x, Activation act, Tensor& y) const {
  by_element(x.dtype(), [&](auto e) { activate<decltype(e)>(x, act, y); });
}

void Cuda::activation_backward(const Tensor& kept, const Tensor& dy, Activation act,
                               Tensor& dx) const {
  by_element(dy.dtype(), [&](auto e) { slope<decltype(e)>(kept, dy, act, dx); });
}

void Cuda::add(const Tensor& a, const Tensor& b, Activation act, Tensor& y) const {
  by_element(a.dtype(), [&](auto e) { join<decltype(e)>(a, b, act, y); });
}

void Cuda::dropout(const Tensor& x, double p, DropoutKey key, Tensor& y) const {
  by_element(x.dtype(), [&](auto e) { drop<decltype(e)>(x, p, key, y); });
}

void Cuda::axpy(double alpha, const Tensor& x, Tensor& y) const {
  if (y.dtype() == Dtype::f64) return add_doubles(alpha, x, y);
  by_element(y.dtype(), [&](auto e) { add_to<decltype(e)>(alpha, x, y); });
}

}  // namespace howmany::backends
