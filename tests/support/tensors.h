// SPDX-License-Identifier: Apache-2.0
// Random tensors from a printed seed, and comparison relative to the largest expected magnitude.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/backends/backend.h"
#include "core/tensor/rng.h"
#include "core/tensor/tensor.h"

namespace howmany::testing_support {

// Returns a new seed for each run. Set HOWMANY_TEST_SEED to reproduce a failure.
inline uint64_t fresh_seed() {
  if (const char* fixed = std::getenv("HOWMANY_TEST_SEED")) return std::stoull(fixed);
  return static_cast<uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
}

// Draws tensors in sequence. Equal seeds give equal sequences.
class Draw {
 public:
  explicit Draw(uint64_t seed, Dtype dtype = Dtype::f32) : seed_(seed), dtype_(dtype) {}

  Tensor normal(const Shape& shape) {
    Tensor t = Tensor::empty(shape, dtype_);
    fill_normal(t, 0, 1, next());
    return t;
  }
  Tensor uniform(const Shape& shape, double low, double high) {
    Tensor t = Tensor::empty(shape, dtype_);
    fill_uniform(t, low, high, next());
    return t;
  }
  Tensor ids(const Shape& shape, int64_t bound) {
    Tensor t = Tensor::empty(shape, Dtype::i64);
    const Rng rng = next();
    uint64_t i = 0;
    for (int64_t& id : t.mutable_values<int64_t>()) id = rng.below(i++, bound);
    return t;
  }

 private:
  Rng next() { return Rng(seed_, ++stream_); }

  uint64_t seed_, stream_ = 0;
  Dtype dtype_;
};

inline std::vector<double> doubles(const Tensor& t) {
  const Tensor d = t.to(Device{}).to(Dtype::f64);
  const auto values = d.values<double>();
  return {values.begin(), values.end()};
}

// The device on which a backend computes.
inline Device home_of(const Backend& backend) { return {backend.device_type(), 0}; }

// The largest absolute difference between elements.
inline double largest_difference(const Tensor& a, const Tensor& b) {
  const std::vector<double> x = doubles(a), y = doubles(b);
  double largest = 0;
  for (size_t i = 0; i < x.size(); ++i)
    if (std::isfinite(x[i] - y[i])) largest = std::max(largest, std::abs(x[i] - y[i]));
  return largest;
}

// Compares elements within tolerance times the largest expected magnitude, or within `slack`. NaN
// must be exactly where it is expected.
inline ::testing::AssertionResult close(const Tensor& got, const Tensor& want, double tolerance,
                                        double slack = 0) {
  if (!got || !want || got.shape() != want.shape())
    return ::testing::AssertionFailure()
           << "shape " << got.shape().str() << ", expected " << want.shape().str();
  const std::vector<double> g = doubles(got), w = doubles(want);
  double scale = 0;
  for (double v : w)
    if (std::isfinite(v)) scale = std::max(scale, std::abs(v));
  for (size_t i = 0; i < w.size(); ++i) {
    const bool same = g[i] == w[i] || (std::isnan(g[i]) && std::isnan(w[i])) ||
                      std::abs(g[i] - w[i]) <= std::max(tolerance * scale, slack);
    if (!same)
      return ::testing::AssertionFailure()
             << "element " << i << " of " << want.shape().str() << " is " << g[i] << ", expected "
             << w[i] << " within " << tolerance << " of " << scale << ", or " << slack;
  }
  return ::testing::AssertionSuccess();
}

}  // namespace howmany::testing_support
