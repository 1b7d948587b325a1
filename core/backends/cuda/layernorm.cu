#include "core/backends/cuda/columns.cuh"
#include "core/backends/cuda/cuda.h"

// Over the rows of x [rows, width]: a block for each.
namespace howmany::backends {
namespace {

using cuda::block_sum;
using cuda::OnDevice;
using cuda::Pair;

int64_t row_count(const Tensor& x, int64_t width) { return width == 0 ? 0 : x.numel() / width; }
float share_of(int64_t width) { return static_cast<float>(1 / static_cast<double>(width)); }

}  // namespace

void Cuda::layernorm(const Tensor& x, const Tensor& scale, const Tensor& shift, double epsilon,
                     Tensor& mean, Tensor& inv_std, Tensor& y) const {
  const OnDevice on(x);
  const int64_t width = scale.numel();
  const float *const xs = x.data<float>(), *const scales = scale.data<float>(),
                     *const shifts = shift.data<float>();
  float *const means = mean.mutable_data<float>(), *const invs = inv_std.mutable_data<float>(),
               *const ys = y.mutable_data<float>();
  const float share = share_of(width), least = static_cast<float>(epsilon);
  cuda::each_row(row_count(x, width), width, on, [=] __device__(int64_t n) {
    const float* const row = xs + n * width;
    Pair mine{0, 0};
    for (int64_t c = threadIdx.x; c < width; c += blockDim.x) mine.a += row[c];
    const float m = block_sum(mine).a * share;
    mine = {0, 0};
    for (int64_t c = threadIdx.x; c < width; c += blockDim.x) {
      const float off = row[c] - m;
      mine.a += off;
      mine.b += off * off;
    }
    // What rounding left of the mean comes off again: the corrected two-pass algorithm of Chan,
    // Golub and LeVeque (1983).
    const Pair sum = block_sum(mine);
    const float rest = sum.a * share;
    const float inv = 1 / sqrtf(sum.b * share - rest * rest + least);
    if (threadIdx.x == 0) {
      means[n] = m + rest;
      invs[n] = inv;
    }
    for (int64_t c = threadIdx.x; c < width; c += blockDim.x)
      ys[n * width + c] = (row[c] - m - rest) * inv * scales[c] + shifts[c];
  });
}

void Cuda::layernorm_backward(const Tensor& x, const Tensor& scale, const Tensor& dy,
                              const Tensor& mean, const Tensor& inv_std, Tensor& dx,
                              GradOut& dscale, GradOut& dshift) const {
  const OnDevice on(x);
  const int64_t width = scale.numel(), rows = row_count(x, width);
  const float *const xs = x.data<float>(), *const dys = dy.data<float>(),
                     *const scales = scale.data<float>();
  const float *const means = mean.data<float>(), *const invs = inv_std.data<float>();
  float* const dxs = dx.mutable_data<float>();
  const float share = share_of(width);
  cuda::each_row(rows, width, on, [=] __device__(int64_t n) {
    const auto xhat = [=](int64_t c) { return (xs[n * width + c] - means[n]) * invs[n]; };
    const auto d = [=](int64_t c) { return dys[n * width + c] * scales[c]; };
    Pair mine{0, 0};
    for (int64_t c = threadIdx.x; c < width; c += blockDim.x) {
      mine.a += d(c);
      mine.b += d(c) * xhat(c);
    }
    const Pair sum = block_sum(mine);
    for (int64_t c = threadIdx.x; c < width; c += blockDim.x)
      dxs[n * width + c] = invs[n] * (d(c) - (sum.a + xhat(c) * sum.b) * share);
  });
  const cuda::Slot scale_slot = cuda::slot_of(dscale), shift_slot = cuda::slot_of(dshift);
  cuda::reduce_columns(
      rows, width, x.device(), on,
      [=] __device__(int64_t n, int64_t c) {
        const float d = dys[n * width + c];
        return Pair{d * (xs[n * width + c] - means[n]) * invs[n], d};
      },
      [=] __device__(int64_t c, cuda::Sums sum) {
        scale_slot.put(c, sum.a);
        shift_slot.put(c, sum.b);
      });
}

}  // namespace howmany::backends
