// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "core/backends/batchnorm_kernels.h"
#include "core/base/error.h"

namespace howmany {
namespace {

std::vector<double> read(const Tensor& t) {
  const Tensor doubles = t.to(Dtype::f64);
  return {doubles.values<double>().begin(), doubles.values<double>().end()};
}

void write(const std::vector<double>& values, Tensor& t) {
  t.copy_from(Tensor::from(values, t.shape()).to(t.dtype()));
}

void write(std::vector<double> a, const std::vector<double>& b, double rows, Tensor& message) {
  a.insert(a.end(), b.begin(), b.end());
  a.push_back(rows);
  write(a, message);
}

void move_towards(Tensor& running, const std::vector<double>& targets, double factor,
                  double momentum) {
  std::vector<double> values = read(running);
  for (size_t c = 0; c < values.size(); ++c)
    values[c] = (1 - momentum) * values[c] + momentum * factor * targets[c];
  write(values, running);
}

// The two parts of a message, divided by the number of rows of all replicas.
struct Means {
  explicit Means(const Tensor& message) {
    const std::span<const double> all = message.values<double>();
    const size_t channels = all.size() / 2;
    rows = all.back();
    for (size_t c = 0; c < 2 * channels; ++c)
      (c < channels ? a : b).push_back(rows > 0 ? all[c] / rows : 0);
  }
  std::vector<double> a, b;
  double rows = 0;
};

}  // namespace

void BatchNormKernels::unsupported(std::string_view operation) const {
  throw Error(fmt::format("[{}] {} is not supported", name(), operation));
}

void BatchNormKernels::batchnorm(const Tensor&, const Tensor&, const Tensor&, Activation,
                                 BatchNormState&, Tensor&, Tensor&, Tensor&) const {
  unsupported("batchnorm");
}
void BatchNormKernels::batchnorm_inference(const Tensor&, const Tensor&, const Tensor&, Activation,
                                           const BatchNormState&, Tensor&) const {
  unsupported("batchnorm_inference");
}
void BatchNormKernels::batchnorm_moments(const Tensor&, Tensor&, Tensor&) const {
  unsupported("batchnorm_moments");
}
void BatchNormKernels::batchnorm_backward_sums(const BatchNormBackward&, Tensor&, Tensor&) const {
  unsupported("batchnorm_backward_sums");
}
void BatchNormKernels::batchnorm_backward_input(const BatchNormBackward&, const Tensor&,
                                                const Tensor&, double, Tensor&) const {
  unsupported("batchnorm_backward_input");
}

// Statistics over replicas, for CPU backends. Plain loops in f64, because there are few values.
void BatchNormKernels::batchnorm_send_moments(const Tensor& mean, const Tensor& variance,
                                              double rows, Tensor& message) const {
  std::vector<double> first = read(mean), second = read(variance);
  for (size_t c = 0; c < first.size(); ++c) {
    second[c] = rows * (second[c] + first[c] * first[c]);
    first[c] *= rows;
  }
  write(std::move(first), second, rows, message);
}

void BatchNormKernels::batchnorm_receive_moments(const Tensor& message, BatchNormState& state,
                                                 Tensor& mean, Tensor& variance,
                                                 Tensor& inv_std) const {
  Means all(message);
  for (size_t c = 0; c < all.a.size(); ++c)
    all.b[c] = std::max(all.b[c] - all.a[c] * all.a[c], 0.0);
  write(all.a, mean);
  write(all.b, variance);
  if (all.rows >= 2) {
    move_towards(state.running_mean, all.a, 1, state.momentum);
    move_towards(state.running_var, all.b, all.rows / (all.rows - 1), state.momentum);
  }
  for (double& v : all.b) v = 1 / std::sqrt(v + state.epsilon);
  write(all.b, inv_std);
}

void BatchNormKernels::batchnorm_send_sums(const Tensor& dots, const Tensor& sums, double rows,
                                           Tensor& message) const {
  write(read(dots), read(sums), rows, message);
}

void BatchNormKernels::batchnorm_receive_sums(const Tensor& message, Tensor& dots,
                                              Tensor& sums) const {
  const Means all(message);
  write(all.a, dots);
  write(all.b, sums);
}

}  // namespace howmany
