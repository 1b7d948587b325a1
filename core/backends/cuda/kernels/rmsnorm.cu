// SPDX-License-Identifier: Apache-2.0
#include "core/backends/cuda/kernels/columns.cuh"
#include "core/backends/cuda/runtime/cuda.h"

// RMS norm over the rows of x [rows, width], one block per row.
namespace howmany::backends {
namespace {

using cuda::block_sum;
using cuda::by_16;
using cuda::by_element;
using cuda::each_column;
using cuda::each_lane;
using cuda::kLanes;
using cuda::load;
using cuda::OnDevice;
using cuda::Pair;
using cuda::store;

template <typename T>
struct RmsForward {
  const T* x;
  const float* scale;
  float* inv_rms;
  T* y;
  int64_t width;
  bool together;
  float share, epsilon;

  __device__ void operator()(int64_t n) const {
    const T* const row = x + n * width;
    Pair mine{0, 0};
    each_column<kLanes<T>>(width, together, [&](int64_t c, auto lanes) {
      const auto v = load(row + c, lanes);
      HM_UNROLL
      for (int l = 0; l < lanes.count; ++l) mine.a += v.at[l] * v.at[l];
    });
    const float inv = 1 / sqrtf(block_sum(mine).a * share + epsilon);
    if (threadIdx.x == 0) inv_rms[n] = inv;
    each_column<kLanes<T>>(width, together, [&](int64_t c, auto lanes) {
      const auto v = load(row + c, lanes), by = load(scale + c, lanes);
      store(y + n * width + c, each_lane(lanes, [&](int l) { return v.at[l] * inv * by.at[l]; }));
    });
  }
};

template <typename T>
void rms_forward(const Tensor& x, const Tensor& scale, double epsilon, Tensor& inv_rms, Tensor& y) {
  const OnDevice on(x);
  const int64_t width = scale.numel();
  RmsForward<T> f{.x = x.data<T>(),
                  .scale = scale.data<float>(),
                  .inv_rms = inv_rms.mutable_data<float>(),
                  .y = y.mutable_data<T>(),
                  .width = width,
                  .together = false,
                  .share = static_cast<float>(1 / static_cast<double>(width)),
                  .epsilon = static_cast<float>(epsilon)};
  f.together = width % kLanes<T> == 0 && by_16(f.x, f.scale, f.y);
  cuda::each_row(inv_rms.numel(), f.together ? width / kLanes<T> : width, on, f);
}

template <typename T>
struct RmsBackward {
  const T *x, *dy;
  const float *scale, *inv_rms;
  T* dx;
  int64_t width;
  bool together;
  float share;

  __device__ void operator()(int64_t n) const {
    const T *const row = x + n * width, *const drow = dy + n * width;
    const float inv = inv_rms[n];
    Pair mine{0, 0};
    each_column<kLanes<T>>(width, together, [&](int64_t c, auto lanes) {
      const auto v = load(row + c, lanes), d = load(drow + c, lanes), by = load(scale + c, lanes);
      HM_UNROLL
      for (int l = 0; l < lanes.count; ++l) mine.a += d.at[l] * by.at[l] * (v.at[l] * inv);
    });
    const float dot = block_sum(mine).a * share;
    each_column<kLanes<T>>(width, together, [&](int64_t c, auto lanes) {
      const auto v = load(row + c, lanes), d = load(drow + c, lanes), by = load(scale + c, lanes);
      store(dx + n * width + c, each_lane(lanes, [&](int l) {
              return inv * (d.at[l] * by.at[l] - v.at[l] * inv * dot);
            }));
    });
  }
};

template <typename T>
void rms_backward(const Tensor& x, const Tensor& scale, const Tensor& dy, const Tensor& inv_rms,
                  Tensor& dx, GradOut& dscale) {
  const OnDevice on(x);
  const int64_t width = scale.numel(), rows = inv_rms.numel();
  RmsBackward<T> b{.x = x.data<T>(),
                   .dy = dy.data<T>(),
                   .scale = scale.data<float>(),
                   .inv_rms = inv_rms.data<float>(),
                   .dx = dx.mutable_data<T>(),
                   .width = width,
                   .together = false,
                   .share = static_cast<float>(1 / static_cast<double>(width))};
  b.together = width % kLanes<T> == 0 && by_16(b.x, b.dy, b.scale, b.dx);
  cuda::each_row(rows, b.together ? width / kLanes<T> : width, on, b);
  const cuda::Slot slot = cuda::slot_of(dscale);
  cuda::reduce_columns<kLanes<T>>(
      rows, width, b.together, x.device(), on,
      [=] __device__(int64_t n, int64_t c, auto lanes) {
        const auto v = load(b.x + n * b.width + c, lanes), d = load(b.dy + n * b.width + c, lanes);
        const float inv = b.inv_rms[n];
        return each_lane(lanes, [&](int l) { return Pair{d.at[l] * v.at[l] * inv, 0}; });
      },
      [=] __device__(int64_t c, cuda::Sums sum) { slot.put(c, sum.a); });
}

}  // namespace

void Cuda::rmsnorm(const Tensor& x, const Tensor& scale, double epsilon, Tensor& inv_rms,
                   Tensor& y) const {
  by_element(x.dtype(), [&](auto e) { rms_forward<decltype(e)>(x, scale, epsilon, inv_rms, y); });
}

void Cuda::rmsnorm_backward(const Tensor& x, const Tensor& scale, const Tensor& dy,
                            const Tensor& inv_rms, Tensor& dx, GradOut& dscale) const {
  by_element(x.dtype(),
             [&](auto e) { rms_backward<decltype(e)>(x, scale, dy, inv_rms, dx, dscale); });
}

}  // namespace howmany::backends
