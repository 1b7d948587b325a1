// A product as cuBLASLt is told it, kept for the next of its kind: the descriptors, and the
// algorithm. Of the first few of cuBLASLt's heuristics the fastest is taken, measured once: on the
// second call, since a kind asked for once is not worth it, into memory of its own, and waiting for
// the GPU that one time. While a graph is captured, and for products that take no longer than their
// launch, it is the first that works. Thread-safe. Private to core/backends/cuda.
#pragma once

#include <mutex>
#include <vector>

#include "core/backends/cuda/blas/blas.h"
#include "core/backends/cuda/blas/cublaslt.h"
#include "core/backends/cuda/runtime/runtime.h"

namespace howmany::cuda {

struct LtRoom {  // of a GPU
  cublasLtHandle_t handle = nullptr;
  void* workspace = nullptr;
};
constexpr size_t kWorkspace = size_t{32} << 20;  // as NVIDIA advises for Hopper

constexpr int kCandidates = 8, kTimes = 3;
constexpr int64_t kWorthMeasuring = int64_t{1} << 20;  // multiplications

class Problem {
 public:
  Problem(const Product& p, const ProblemKey& key, const LtRoom& room);
  void multiply(const Product& p, const OnDevice& on);  // p: of this key

 private:
  using Description =
      std::unique_ptr<cublasLtMatmulDescOpaque_t, decltype(CublasLt::cublasLtMatmulDescDestroy)>;
  using Layout = std::unique_ptr<cublasLtMatrixLayoutOpaque_t,
                                 decltype(CublasLt::cublasLtMatrixLayoutDestroy)>;
  static Description description_of(const Product& p);
  static Layout layout_of(const Stored& s, Dtype kept);

  std::vector<cublasLtMatmulAlgo_t> ask(const ProblemKey& key) const;
  bool worth_measuring(const Product& p) const;
  void measure(Product p, const OnDevice& on);
  // False where the algorithm cannot do it after all.
  bool run(const Product& p, const cublasLtMatmulAlgo_t& algorithm, const OnDevice& on) const;

  const int device_;
  const LtRoom room_;
  const Description description_;
  const Layout a_, b_, y_;
  std::mutex mutex_;
  std::vector<cublasLtMatmulAlgo_t> algorithms_;  // the best first
  int64_t calls_ = 0;
  bool measured_ = false;
};

}  // namespace howmany::cuda
