// SPDX-License-Identifier: Apache-2.0
#include "core/backends/cuda/kernels/columns.cuh"
#include "core/backends/cuda/runtime/cuda.h"

// One block per group of channels of a sample.
namespace howmany::backends {
namespace {

using cuda::block_sum;
using cuda::by_element;
using cuda::Divisor;
using cuda::OnDevice;
using cuda::Pair;
using cuda::rounded;

struct GroupLayout {
  GroupLayout(const Tensor& x, int64_t group_count)
      : samples(x.shape()[0]),
        channels(x.shape()[-1]),
        rows(samples * channels == 0 ? 0 : x.numel() / (samples * channels)),
        groups(group_count),
        each(channels / group_count),
        by_groups(group_count),
        by_each(each),
        by_rows(rows),
        share(static_cast<float>(1 / static_cast<double>(rows * each))) {}

  int64_t cells() const { return samples * groups; }
  __host__ __device__ int64_t count() const { return rows * each; }
  __device__ int64_t channel(int64_t cell, int64_t i) const {
    return by_groups.rest(cell) * each + by_each.rest(i);
  }
  __device__ int64_t at(int64_t cell, int64_t i) const {
    return (by_groups(cell) * rows + by_each(i)) * channels + channel(cell, i);
  }

  int64_t samples, channels, rows, groups, each;
  Divisor by_groups, by_each, by_rows;
  float share;
};

template <typename T>
void group_forward(const Tensor& x, int64_t groups, const Tensor& scale, const Tensor& shift,
                   double epsilon, Tensor& mean, Tensor& inv_std, Tensor& y) {
  const OnDevice on(x);
  const GroupLayout g(x, groups);
  const T* const in = x.data<T>();
  const float *const by = scale.data<float>(), *const plus = shift.data<float>();
  float *const means = mean.mutable_data<float>(), *const invs = inv_std.mutable_data<float>();
  T* const out = y.mutable_data<T>();
  const auto eps = static_cast<float>(epsilon);
  cuda::each_row(g.cells(), g.count(), on, [=] __device__(int64_t cell) {
    Pair mine{0, 0};
    for (int64_t i = threadIdx.x; i < g.count(); i += blockDim.x)
      mine.a += static_cast<float>(in[g.at(cell, i)]);
    const float m = block_sum(mine).a * g.share;
    mine = {0, 0};
    for (int64_t i = threadIdx.x; i < g.count(); i += blockDim.x) {
      const float off = static_cast<float>(in[g.at(cell, i)]) - m;
      mine.a += off * off;
    }
    const float inv = 1 / sqrtf(block_sum(mine).a * g.share + eps);
    if (threadIdx.x == 0) {
      means[cell] = m;
      invs[cell] = inv;
    }
    for (int64_t i = threadIdx.x; i < g.count(); i += blockDim.x) {
      const int64_t at = g.at(cell, i), c = g.channel(cell, i);
      out[at] = rounded<T>((static_cast<float>(in[at]) - m) * inv * by[c] + plus[c]);
    }
  });
}

template <typename T>
void group_backward(const Tensor& x, int64_t groups, const Tensor& scale, const Tensor& dy,
                    const Tensor& mean, const Tensor& inv_std, Tensor& dx, GradOut& dscale,
                    GradOut& dshift) {
  const OnDevice on(x);
  const GroupLayout g(x, groups);
  const T *const in = x.data<T>(), *const d = dy.data<T>();
  const float *const by = scale.data<float>(), *const means = mean.data<float>(),
                     *const invs = inv_std.data<float>();
  T* const out = dx.mutable_data<T>();
  cuda::each_row(g.cells(), g.count(), on, [=] __device__(int64_t cell) {
    const float m = means[cell], inv = invs[cell];
    Pair mine{0, 0};
    for (int64_t i = threadIdx.x; i < g.count(); i += blockDim.x) {
      const int64_t at = g.at(cell, i);
      const float scaled = static_cast<float>(d[at]) * by[g.channel(cell, i)];
      mine.a += scaled;
      mine.b += scaled * ((static_cast<float>(in[at]) - m) * inv);
    }
    const Pair sum = block_sum(mine);
    for (int64_t i = threadIdx.x; i < g.count(); i += blockDim.x) {
      const int64_t at = g.at(cell, i);
      const float xhat = (static_cast<float>(in[at]) - m) * inv;
      out[at] = rounded<T>(inv * (static_cast<float>(d[at]) * by[g.channel(cell, i)] -
                                  (sum.a + xhat * sum.b) * g.share));
    }
  });
  const cuda::Slot scale_slot = cuda::slot_of(dscale), shift_slot = cuda::slot_of(dshift);
  cuda::reduce_columns<1>(
      g.samples * g.rows, g.channels, false, x.device(), on,
      [=] __device__(int64_t row, int64_t c, auto lanes) {
        const int64_t cell = g.by_rows(row) * g.groups + g.by_each(c), at = row * g.channels + c;
        const auto grad = static_cast<float>(d[at]);
        const float xhat = (static_cast<float>(in[at]) - means[cell]) * invs[cell];
        return cuda::each_lane(lanes, [&](int) { return Pair{grad * xhat, grad}; });
      },
      [=] __device__(int64_t c, cuda::Sums sum) {
        scale_slot.put(c, sum.a);
        shift_slot.put(c, sum.b);
      });
}

}  // namespace

void Cuda::groupnorm(const Tensor& x, int64_t groups, const Tensor& scale, const Tensor& shift,
                     double epsilon, Tensor& mean, Tensor& inv_std, Tensor& y) const {
  by_element(x.dtype(), [&](auto e) {
    group_forward<decltype(e)>(x, groups, scale, shift, epsilon, mean, inv_std, y);
  });
}

void Cuda::groupnorm_backward(const Tensor& x, int64_t groups, const Tensor& scale,
                              const Tensor& dy, const Tensor& mean, const Tensor& inv_std,
                              Tensor& dx, GradOut& dscale, GradOut& dshift) const {
  by_element(x.dtype(), [&](auto e) {
    group_backward<decltype(e)>(x, groups, scale, dy, mean, inv_std, dx, dscale, dshift);
  });
}

}  // namespace howmany::backends
