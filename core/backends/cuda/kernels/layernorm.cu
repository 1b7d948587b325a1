// SPDX-License-Identifier: Apache-2.0
#include "core/backends/cuda/kernels/columns.cuh"
#include "core/backends/cuda/runtime/cuda.h"

// Layer norm over the rows of x [rows, width], one block per row.
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

int64_t row_count(const Tensor& x, int64_t width) { return width == 0 ? 0 : x.numel() / width; }
float share_of(int64_t width) { return static_cast<float>(1 / static_cast<double>(width)); }

template <typename T>
struct Forward {
  const T* x;
  const float *scale, *shift;
  float *mean, *inv_std;
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
      for (int l = 0; l < lanes.count; ++l) mine.a += v.at[l];
    });
    const float m = block_sum(mine).a * share;
    mine = {0, 0};
    each_column<kLanes<T>>(width, together, [&](int64_t c, auto lanes) {
      const auto v = load(row + c, lanes);
      HM_UNROLL
      for (int l = 0; l < lanes.count; ++l) {
        const float off = v.at[l] - m;
        mine.a += off;
        mine.b += off * off;
      }
    });
    // Corrects for the rounding of the mean: the corrected two-pass algorithm of Chan, Golub and
    // LeVeque (1983).
    const Pair sum = block_sum(mine);
    const float rest = sum.a * share;
    const float inv = 1 / sqrtf(sum.b * share - rest * rest + epsilon);
    if (threadIdx.x == 0) {
      mean[n] = m + rest;
      inv_std[n] = inv;
    }
    each_column<kLanes<T>>(width, together, [&](int64_t c, auto lanes) {
      const auto v = load(row + c, lanes), by = load(scale + c, lanes),
                 plus = load(shift + c, lanes);
      store(y + n * width + c, each_lane(lanes, [&](int l) {
              return (v.at[l] - m - rest) * inv * by.at[l] + plus.at[l];
            }));
    });
  }
};

template <typename T>
void forward(const Tensor& x, const Tensor& scale, const Tensor& shift, double epsilon,
             Tensor& mean, Tensor& inv_std, Tensor& y) {
  const OnDevice on(x);
  const int64_t width = scale.numel();
  Forward<T> f{.x = x.data<T>(),
               .scale = scale.data<float>(),
               .shift = shift.data<float>(),
               .mean = mean.mutable_data<float>(),
               .inv_std = inv_std.mutable_data<float>(),
               .y = y.mutable_data<T>(),
               .width = width,
               .together = false,
               .share = share_of(width),
               .epsilon = static_cast<float>(epsilon)};
  f.together = width % kLanes<T> == 0 && by_16(f.x, f.scale, f.shift, f.y);
  cuda::each_row(row_count(x, width), f.together ? width / kLanes<T> : width, on, f);
}

template <typename T>
struct Backward {
  const T *x, *dy;
  const float *scale, *mean, *inv_std;
  T* dx;
  int64_t width;
  bool together;
  float share;

  __device__ void operator()(int64_t n) const {
    const T *const row = x + n * width, *const drow = dy + n * width;
    const float m = mean[n], inv = inv_std[n];
    Pair mine{0, 0};
    each_column<kLanes<T>>(width, together, [&](int64_t c, auto lanes) {
      const auto v = load(row + c, lanes), d = load(drow + c, lanes), by = load(scale + c, lanes);
      HM_UNROLL
      for (int l = 0; l < lanes.count; ++l) {
        const float scaled = d.at[l] * by.at[l];
        mine.a += scaled;
        mine.b += scaled * ((v.at[l] - m) * inv);
      }
    });
    const Pair sum = block_sum(mine);
    each_column<kLanes<T>>(width, together, [&](int64_t c, auto lanes) {
      const auto v = load(row + c, lanes), d = load(drow + c, lanes), by = load(scale + c, lanes);
      store(dx + n * width + c, each_lane(lanes, [&](int l) {
              const float xhat = (v.at[l] - m) * inv;
              return inv * (d.at[l] * by.at[l] - (sum.a + xhat * sum.b) * share);
            }));
    });
  }
};

template <typename T>
void parameter_gradients(const Backward<T>& b, int64_t rows, Device device, const OnDevice& on,
                         GradOut& dscale, GradOut& dshift) {
  const cuda::Slot scale_slot = cuda::slot_of(dscale), shift_slot = cuda::slot_of(dshift);
  cuda::reduce_columns<kLanes<T>>(
      rows, b.width, b.together, device, on,
      [=] __device__(int64_t n, int64_t c, auto lanes) {
        const auto v = load(b.x + n * b.width + c, lanes), d = load(b.dy + n * b.width + c, lanes);
        const float m = b.mean[n], inv = b.inv_std[n];
        return each_lane(lanes, [&](int l) {
          return Pair{d.at[l] * (v.at[l] - m) * inv, d.at[l]};
        });
      },
      [=] __device__(int64_t c, cuda::Sums sum) {
        scale_slot.put(c, sum.a);
        shift_slot.put(c, sum.b);
      });
}

template <typename T>
void backward(const Tensor& x, const Tensor& scale, const Tensor& dy, const Tensor& mean,
              const Tensor& inv_std, Tensor& dx, GradOut& dscale, GradOut& dshift) {
  const OnDevice on(x);
  const int64_t width = scale.numel(), rows = row_count(x, width);
  Backward<T> b{.x = x.data<T>(),
                .dy = dy.data<T>(),
                .scale = scale.data<float>(),
                .mean = mean.data<float>(),
                .inv_std = inv_std.data<float>(),
                .dx = dx.mutable_data<T>(),
                .width = width,
                .together = false,
                .share = share_of(width)};
  b.together = width % kLanes<T> == 0 && by_16(b.x, b.dy, b.scale, b.dx);
  cuda::each_row(rows, b.together ? width / kLanes<T> : width, on, b);
  parameter_gradients(b, rows, x.device(), on, dscale, dshift);
}

}  // namespace

void Cuda::layernorm(const Tensor& x, const Tensor& scale, const Tensor& shift, double epsilon,
                     Tensor& mean, Tensor& inv_std, Tensor& y) const {
  by_element(x.dtype(),
             [&](auto e) { forward<decltype(e)>(x, scale, shift, epsilon, mean, inv_std, y); });
}

void Cuda::layernorm_backward(const Tensor& x, const Tensor& scale, const Tensor& dy,
                              const Tensor& mean, const Tensor& inv_std, Tensor& dx,
                              GradOut& dscale, GradOut& dshift) const {
  by_element(x.dtype(), [&](auto e) {
    backward<decltype(e)>(x, scale, dy, mean, inv_std, dx, dscale, dshift);
  });
}

}  // namespace howmany::backends
