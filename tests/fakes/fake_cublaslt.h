// SPDX-License-Identifier: Apache-2.0
// The interface of tests to the fake libcublasLt (fake_cublaslt.cpp). Both include this.
#pragma once

#include <array>
#include <atomic>

namespace howmany {

struct FakeAlgorithm {
  double seconds = 0;         // per product; negative: it fails
  std::atomic<int> runs = 0;  // includes failed runs
};

// By default the first algorithm fails and the third is the fastest.
struct FakeCublasLt {
  std::array<FakeAlgorithm, 4> algorithms{{{-1}, {5e-6}, {2e-6}, {9e-6}}};
  std::atomic<double> apart = 0;    // algorithm i multiplies its result by 1 + i apart
  std::atomic<int> right_rows = 0;  // if positive: products of more rows are wrong
  std::atomic<int> heuristics = 0;  // calls
  std::atomic<int> made = 0;        // handles, descriptors, layouts, preferences
};

}  // namespace howmany

extern "C" howmany::FakeCublasLt* hm_fake_cublaslt();
