// SPDX-License-Identifier: Apache-2.0
// Inputs and expected values shared with golden.py; see there.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "core/tensor/tensor.h"
#include "tests/support/golden_sums.h"

namespace howmany::golden {

constexpr double kTolerance = 1e-9;  // f64 on both sides
constexpr double kZero = 2e-11;      // sums of a gradient that is zero but for rounding

inline void fill_wave(Tensor& t, double phase, double scale = 1) {
  double i = 0;
  for (double& v : t.mutable_values<double>()) v = scale * std::sin(0.7 * i++ + phase);
}

inline Tensor wave(const Shape& shape, double phase, double scale = 1) {
  Tensor t = Tensor::empty(shape, Dtype::f64);
  fill_wave(t, phase, scale);
  return t;
}

inline testing::AssertionResult matches(const std::string& name, const Tensor& t) {
  const auto found = kSums.find(name);
  if (found == kSums.end()) return testing::AssertionFailure() << "golden.py has no " << name;
  if (!t) return testing::AssertionFailure() << name << " was not computed";
  Sums got{};
  double i = 0, magnitude = 0;
  for (double v : t.values<double>()) {
    got.sine += v * std::sin(1.1 * i + 0.3);
    got.cosine += v * std::cos(0.9 * i++);
    magnitude += std::abs(v);
  }
  const double bound = kTolerance * magnitude + kZero;
  if (std::abs(got.sine - found->second.sine) <= bound &&
      std::abs(got.cosine - found->second.cosine) <= bound)
    return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << name << " sums to " << got.sine << " and " << got.cosine << ", PyTorch's to "
         << found->second.sine << " and " << found->second.cosine;
}

inline testing::AssertionResult matches(const std::string& name, double value) {
  return matches(name, Tensor::full({1}, value, Dtype::f64));
}

}  // namespace howmany::golden
