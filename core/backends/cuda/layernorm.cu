#include "core/backends/cuda/columns.cuh"
#include "core/backends/cuda/cuda.h"

// Over the rows of x [rows, width]: a block for each.
namespace howmany::backends {
namespace {

using cuda::block_sum;
using cuda::OnDevice;
using cuda::Pair;

int64_t row_count(const Tensor& x, int64_t width) { return width == 0 ? 0 : x.numel() / width; }

}  // namespace

void Cuda::layernorm(const Tensor& x, const Tensor& scale, const Tensor& shift, double epsilon,
                     Tensor& mean, Tensor& inv_std, Tensor& y) const {
  const OnDevice on(x);
  const int64_t width = scale.numel();
  const float *const xs = x.data<float>(), *const scales = scale.data<float>(),
                     *const shifts = shift.data<float>();
  float *const means = mean.mutable_data<float>(), *const invs = inv_std.mutable_data<float>(),
               *const ys = y.mutable_data<float>();
  cuda::each_row(row_count(x, width), width, on, [=] __device__(int64_t n) {
    const float* const row = xs + n * width;
    const auto share = static_cast<double>(width);
    Pair sum{0, 0};
    for (int64_t c = threadIdx.x; c < width; c += blockDim.x) sum.a += row[c];
    const double m = block_sum(sum).a / share;
    sum = {0, 0};
    for (int64_t c = threadIdx.x; c < width; c += blockDim.x) sum.a += (row[c] - m) * (row[c] - m);
    const double inv = 1 / sqrt(block_sum(sum).a / share + epsilon);
    if (threadIdx.x == 0) {
      means[n] = static_cast<float>(m);
      invs[n] = static_cast<float>(inv);
    }
    for (int64_t c = threadIdx.x; c < width; c += blockDim.x)
      ys[n * width + c] = static_cast<float>((row[c] - m) * inv * scales[c] + shifts[c]);
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
  cuda::each_row(rows, width, on, [=] __device__(int64_t n) {
    const auto xhat = [=](int64_t c) { return (double{xs[n * width + c]} - means[n]) * invs[n]; };
    const auto d = [=](int64_t c) { return double{dys[n * width + c]} * scales[c]; };
    Pair mine{0, 0};
    for (int64_t c = threadIdx.x; c < width; c += blockDim.x) {
      mine.a += d(c);
      mine.b += d(c) * xhat(c);
    }
    const Pair sum = block_sum(mine);
    const auto share = static_cast<double>(width);
    for (int64_t c = threadIdx.x; c < width; c += blockDim.x)
      dxs[n * width + c] = static_cast<float>(invs[n] * (d(c) - (sum.a + xhat(c) * sum.b) / share));
  });
  const cuda::Slot scale_slot = cuda::slot_of(dscale), shift_slot = cuda::slot_of(dshift);
  cuda::reduce_columns(
      rows, width, x.device(), on,
      [=] __device__(int64_t n, int64_t c) {
        const double d = dys[n * width + c];
        return Pair{d * (double{xs[n * width + c]} - means[n]) * invs[n], d};
      },
      [=] __device__(int64_t c, Pair sum) {
        scale_slot.put(c, sum.a);
        shift_slot.put(c, sum.b);
      });
}

}  // namespace howmany::backends
