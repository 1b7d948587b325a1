#include <cmath>

#include "core/backends/cuda/cuda.h"
#include "core/backends/cuda/launch.cuh"
#include "core/backends/cuda/math.cuh"
#include "core/rng.h"

namespace howmany::backends {

using cuda::each;
using cuda::OnDevice;

void Cuda::activation(const Tensor& x, Activation act, Tensor& y) const {
  const OnDevice on(x);
  const float* const in = x.data<float>();
  float* const out = y.mutable_data<float>();
  each(x.numel(), on, [=] __device__(int64_t i) { out[i] = cuda::activate(in[i], act); });
}

void Cuda::activation_backward(const Tensor& kept, const Tensor& dy, Activation act,
                               Tensor& dx) const {
  const OnDevice on(dy);
  const float *const k = kept.data<float>(), *const d = dy.data<float>();
  float* const out = dx.mutable_data<float>();
  each(dy.numel(), on,
       [=] __device__(int64_t i) { out[i] = d[i] * cuda::activation_slope(k[i], act); });
}

void Cuda::add(const Tensor& a, const Tensor& b, Activation act, Tensor& y) const {
  const OnDevice on(a);
  const float *const left = a.data<float>(), *const right = b.data<float>();
  float* const out = y.mutable_data<float>();
  each(a.numel(), on,
       [=] __device__(int64_t i) { out[i] = cuda::activate(left[i] + right[i], act); });
}

// The bits are those of core/rng.h itself, compiled for the device.
void Cuda::dropout(const Tensor& x, double p, DropoutKey key, Tensor& y) const {
  const OnDevice on(x);
  const float* const in = x.data<float>();
  float* const out = y.mutable_data<float>();
  const auto bound = static_cast<uint64_t>(std::ceil(p * 0x1p32));  // bits below p 2^32 drop
  const auto kept = static_cast<float>(1 / (1 - p));
  each(x.numel(), on, [=] __device__(int64_t i) {
    const auto element = static_cast<uint64_t>(key.first_element + i);
    const auto block = Rng(key.drawn(), key.stream).bits4(element / 4);
    const bool drop = block[element % 4] < bound;
    out[i] = drop ? 0.0f : in[i] * kept;
  });
}

void Cuda::axpy(double alpha, const Tensor& x, Tensor& y) const {
  const OnDevice on(y);
  const float* const in = x.data<float>();
  float* const out = y.mutable_data<float>();
  const auto factor = static_cast<float>(alpha);
  each(x.numel(), on, [=] __device__(int64_t i) { out[i] += factor * in[i]; });
}

}  // namespace howmany::backends
