// SPDX-License-Identifier: Apache-2.0
// Inputs and expected values shared with scripts/studies/golden.py; see there.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "core/base/process.h"
#include "core/base/text/files.h"
#include "core/base/text/json.h"
#include "core/tensor/tensor.h"

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

using Sums = std::array<double, 2>;

// In the folder of an installed test, else in the source tree.
inline std::string sums_file() {
  const std::string installed = program_folder() + "/golden_sums.json";
  if (std::filesystem::exists(installed)) return installed;
  const char* const root = std::getenv("HOWMANY_SOURCE");
  return std::string(root == nullptr ? "." : root) + "/tests/data/golden_sums.json";
}

// Returns the sums of golden_sums.json by name, "linear.y".
inline const std::map<std::string, Sums>& sums() {
  static const auto all = [] {
    std::map<std::string, Sums> read;
    const std::string path = sums_file();
    const nlohmann::json layers = parse_json(read_text(path), path);
    for (const auto& [layer, tensors] : layers.items())
      for (const auto& [tensor, pair] : tensors.items())
        read[layer + "." + tensor] = pair.get<Sums>();
    return read;
  }();
  return all;
}

inline testing::AssertionResult matches(const std::string& name, const Tensor& t) {
  const auto found = sums().find(name);
  if (found == sums().end()) return testing::AssertionFailure() << "golden.py has no " << name;
  if (!t) return testing::AssertionFailure() << name << " was not computed";
  double sine = 0, cosine = 0, i = 0, magnitude = 0;
  for (double v : t.values<double>()) {
    sine += v * std::sin(1.1 * i + 0.3);
    cosine += v * std::cos(0.9 * i++);
    magnitude += std::abs(v);
  }
  const double bound = kTolerance * magnitude + kZero;
  const auto& [golden_sine, golden_cosine] = found->second;
  if (std::abs(sine - golden_sine) <= bound && std::abs(cosine - golden_cosine) <= bound)
    return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << name << " sums to " << sine << " and " << cosine << ", PyTorch's to " << golden_sine
         << " and " << golden_cosine;
}

inline testing::AssertionResult matches(const std::string& name, double value) {
  return matches(name, Tensor::full({1}, value, Dtype::f64));
}

}  // namespace howmany::golden
