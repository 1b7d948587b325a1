// SPDX-License-Identifier: Apache-2.0
// The cuBLASLt descriptors and the algorithm of one kind of product, kept for reuse. Thread-safe.
// Private to core/backends/cuda.
//
// Algorithm. The fastest of the first kCandidates that cuBLASLt's heuristics propose. It is
//   measured once, on the second call, because a product that runs once does not pay for it. The
//   trial writes to memory of its own and blocks only the thread that runs it. All GPUs of a kind
//   use the first choice that was made for a product (core/gpu/tuning.h).
// Exceptions. During a capture, and for products as short as their launch, the first algorithm that
//   works is used.
#pragma once

#include <mutex>
#include <vector>

#include "core/backends/cuda/blas/blas.h"
#include "core/backends/cuda/blas/cublaslt.h"
#include "core/backends/cuda/runtime/runtime.h"
#include "core/backends/cuda/runtime/tuning.h"

namespace howmany::cuda {

struct LtRoom {  // per GPU
  cublasLtHandle_t handle = nullptr;
  void* workspace = nullptr;
};
constexpr size_t kWorkspace = size_t{32} << 20;  // NVIDIA's advice for Hopper

constexpr int kCandidates = 8, kTimes = 3;
constexpr int64_t kWorthMeasuring = int64_t{1} << 20;  // multiplications

// The runs of one algorithm.
struct Trial {
  int64_t place;
  std::vector<std::shared_ptr<CUevent_st>> events;  // before, between and after its runs
};

class Problem {
 public:
  Problem(const Product& p, const ProblemKey& key, const LtRoom& room);
  void multiply(const Product& p, const OnDevice& on);  // p must have this key

 private:
  using Description =
      std::unique_ptr<cublasLtMatmulDescOpaque_t, decltype(CublasLt::cublasLtMatmulDescDestroy)>;
  using Layout = std::unique_ptr<cublasLtMatrixLayoutOpaque_t,
                                 decltype(CublasLt::cublasLtMatrixLayoutDestroy)>;
  static Description description_of(const Product& p);
  static Layout layout_of(const Stored& s, Dtype kept);

  std::vector<cublasLtMatmulAlgo_t> heuristics(const ProblemKey& key) const;
  // Uses the choice of the table, if it has one that is new to this problem.
  void look_up();
  void prefer(int64_t place);
  // Counts a call. Returns true for one thread only: the one that shall run the trial.
  bool begins_trial(const Product& p);
  void try_all(Product p, const OnDevice& on);
  // Enqueues the runs of all algorithms.
  std::vector<Trial> trials_of(const Product& p, const OnDevice& on);
  // Returns false if the algorithm at that place in proposed_ does not support the product after
  // all.
  bool run(const Product& p, int64_t place, const OnDevice& on) const;

  const int device_;
  const LtRoom room_;
  const Description description_;
  const Layout a_, b_, y_;
  const Tuning::Key key_;
  const std::vector<cublasLtMatmulAlgo_t> proposed_;
  // Guards the members below and the bias pointer of description_. It is never held during a wait
  // for the GPU, because the GPU may wait for work that another thread has yet to enqueue.
  std::mutex mutex_;
  std::vector<int64_t> best_;  // places in proposed_, best first
  int64_t generation_ = -1;    // of the table when it was last looked up
  int64_t calls_ = 0;
  bool tried_ = false;
};

}  // namespace howmany::cuda
