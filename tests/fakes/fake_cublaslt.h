// The interface of tests to the fake libcublasLt (fake_cublaslt.cpp). Both include this.
#pragma once

#include <array>
#include <atomic>

namespace howmany {

struct FakeAlgorithm {
  double seconds = 0;         // that a product takes; negative: it refuses
  std::atomic<int> runs = 0;  // refused ones too
};

// Unless told, the first of the heuristics' refuses, and the third is the fastest.
struct FakeCublasLt {
  std::array<FakeAlgorithm, 4> algorithms{{{-1}, {5e-6}, {2e-6}, {9e-6}}};
  std::atomic<int> heuristics = 0;  // calls
  std::atomic<int> made = 0;        // handles, descriptors, layouts, preferences
};

}  // namespace howmany

extern "C" howmany::FakeCublasLt* hm_fake_cublaslt();
