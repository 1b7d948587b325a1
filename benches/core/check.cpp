// SPDX-License-Identifier: Apache-2.0
#include "benches/core/check.h"

#include <cmath>
#include <optional>

#include "core/backends/backend.h"
#include "core/backends/selection.h"
#include "core/base/error.h"
#include "core/ops/ops.h"
#include "core/tensor/precision.h"
#include "core/tensor/rng.h"

namespace howmany::benches {

namespace {

// The factor by which results in the thread's precision may differ more than in f32.
double looser() {
  if (current_precision() == Precision::tf32) return 20;
  return current_precision() == Precision::bf16 ? 200 : 1;
}

}  // namespace

Tensor normal(const Shape& shape, const char* name, Device device) {
  Tensor t = Tensor::empty(shape);
  fill_normal(t, 0, 1, Rng(1, stream_of(name)));
  return t.to(device);
}
Tensor activation(const Shape& shape, const char* name, Device device) {
  return ops::stored(normal(shape, name, device));
}
Tensor room(const Tensor& like) { return Tensor::empty(like.shape(), like.dtype(), like.device()); }

Tensor on_host(const Tensor& t) { return t.to(Device{}).to(Dtype::f32); }

double dot(const Tensor& left, const Tensor& right) {
  const Tensor a = on_host(left), b = left.raw() == right.raw() ? a : on_host(right);
  const float *x = a.data<float>(), *y = b.data<float>();
  double sum = 0;
#pragma omp parallel for reduction(+ : sum)
  for (int64_t i = 0; i < a.numel(); ++i)
    sum += static_cast<double>(x[i]) * static_cast<double>(y[i]);
  return sum;
}

double rms(const Tensor& t) {
  return std::sqrt(dot(t, t) / static_cast<double>(std::max<int64_t>(t.numel(), 1)));
}

void expect_close(const std::string& what, double got, double want, double tolerance) {
  tolerance *= looser();
  HM_ENSURE(std::abs(got - want) <= tolerance, "[core_bench] {} is {}, expected {} within {}", what,
            got, want, tolerance);
}

std::function<std::function<void()>()> checked(const std::string& name, Device device,
                                               const Inputs& inputs, const Outputs& run) {
  return [=]() -> std::function<void()> {
    Tensors in = inputs(device), same = inputs(Device{});
    const Tensors got = run(in);
    std::optional<BackendScope> kernels;
    if (device.type == DeviceType::cpu) kernels.emplace(backend_named("reference"));
    const Tensors want = run(same);
    for (size_t i = 0; i < got.size(); ++i) {
      Tensor off = on_host(got[i]).clone();
      ops::axpy(-1, want[i], off);
      expect_close(name, rms(off), 0, 1e-4 * rms(want[i]));
    }
    return [in, run]() mutable { run(in); };
  };
}

}  // namespace howmany::benches
