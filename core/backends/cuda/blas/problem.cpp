// SPDX-License-Identifier: Apache-2.0
#include "core/backends/cuda/blas/problem.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/backends/cuda/runtime/pause.h"
#include "core/base/error.h"
#include "core/gpu/gpu.h"
#include "core/gpu/graph.h"

namespace howmany::cuda {
namespace {

auto preference_of(const ProblemKey& key) {
  cublasLtMatmulPreference_t made = nullptr;
  check(cublaslt().cublasLtMatmulPreferenceCreate(&made), "matmul preference");
  auto preference = owned(made, cublaslt().cublasLtMatmulPreferenceDestroy);
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t which, const auto& value) {
    check(cublaslt().cublasLtMatmulPreferenceSetAttribute(made, which, &value, sizeof value),
          "matmul preference");
  };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kWorkspace);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, key.align_b);  // cuBLASLt's A is our b
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, key.align_a);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, key.align_y);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, key.align_y);
  // Adds partial sums in f32. Other schemes add them in the dtype of the result.
  if (key.result == Dtype::bf16)
    set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
        static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  return preference;
}

Tuning::Key key_in_table(const ProblemKey& key) {
  Tuning::Key whole = tuning_key(TunedLibrary::blas, key.device);
  for (const int64_t value : {key.m,
                              key.n,
                              key.k,
                              int64_t{key.transpose_a},
                              int64_t{key.transpose_b},
                              int64_t{key.accumulate},
                              static_cast<int64_t>(key.epilogue),
                              int64_t{key.align_a},
                              int64_t{key.align_b},
                              int64_t{key.align_y},
                              int64_t{key.align_bias},
                              key.strides.a,
                              key.strides.b,
                              key.strides.y,
                              key.batch,
                              key.apart.a,
                              key.apart.b,
                              key.apart.y,
                              static_cast<int64_t>(key.inputs),
                              static_cast<int64_t>(key.result)})
    whole.push_back(value);
  return whole;
}

float least_time(const Trial& trial) {
  float least = INFINITY;
  for (size_t i = 1; i < trial.events.size(); ++i) {
    float taken = 0;
    check(cudaEventElapsedTime(&taken, trial.events[i - 1].get(), trial.events[i].get()), "event");
    least = std::min(least, taken);
  }
  return least;
}

cudaDataType type_of(Dtype dtype) { return dtype == Dtype::bf16 ? CUDA_R_16BF : CUDA_R_32F; }

Dtype inputs_of(const Product& p) { return p.inputs == Precision::bf16 ? Dtype::bf16 : Dtype::f32; }

// Returns a zeroed tensor in the layout of the product's result, so that accumulation stays finite.
// Returns an empty one if memory is too small for a second result.
Tensor scratch_for(const Product& p, int device) {
  const Stored y = result_of(p);
  const int64_t elements = (y.batch - 1) * y.apart + (y.columns - 1) * y.ld + y.rows;
  try {
    return Tensor::zeros({elements}, p.y.dtype, {DeviceType::cuda, device});
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

Problem::Layout Problem::layout_of(const Stored& s, Dtype kept) {
  cublasLtMatrixLayout_t made = nullptr;
  check(cublaslt().cublasLtMatrixLayoutCreate(&made, type_of(kept), static_cast<uint64_t>(s.rows),
                                              static_cast<uint64_t>(s.columns), s.ld),
        "matrix layout");
  auto layout = owned(made, cublaslt().cublasLtMatrixLayoutDestroy);
  const auto set = [&](cublasLtMatrixLayoutAttribute_t which, const auto& value) {
    check(cublaslt().cublasLtMatrixLayoutSetAttribute(made, which, &value, sizeof value),
          "matrix layout");
  };
  if (s.batch > 1) {
    set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<int32_t>(s.batch));
    set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, s.apart);
  }
  return layout;
}

Problem::Description Problem::description_of(const Product& p) {
  cublasLtMatmulDesc_t made = nullptr;
  const bool tf32 = p.inputs == Precision::tf32;
  check(cublaslt().cublasLtMatmulDescCreate(
            &made, tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F),
        "matmul description");
  auto description = owned(made, cublaslt().cublasLtMatmulDescDestroy);
  const auto set = [&](cublasLtMatmulDescAttributes_t which, const auto& value) {
    check(cublaslt().cublasLtMatmulDescSetAttribute(made, which, &value, sizeof value),
          "matmul attribute");
  };
  set(CUBLASLT_MATMUL_DESC_TRANSA, first_of(p).operation);
  set(CUBLASLT_MATMUL_DESC_TRANSB, second_of(p).operation);
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(p));
  if (p.bias.data == nullptr) return description;
  set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.bias.data);
  set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, type_of(p.y.dtype));
  return description;
}

Problem::Problem(const Product& p, const ProblemKey& key, const LtRoom& room)
    : device_(key.device),
      room_(room),
      description_(description_of(p)),
      a_(layout_of(first_of(p), inputs_of(p))),
      b_(layout_of(second_of(p), inputs_of(p))),
      y_(layout_of(result_of(p), p.y.dtype)),
      key_(key_in_table(key)),
      proposed_(heuristics(key)),
      best_(proposed_.size()) {
  std::iota(best_.begin(), best_.end(), 0);
}

std::vector<cublasLtMatmulAlgo_t> Problem::heuristics(const ProblemKey& key) const {
  const auto preference = preference_of(key);
  cublasLtMatmulHeuristicResult_t results[kCandidates] = {};
  int found = 0;
  check(cublaslt().cublasLtMatmulAlgoGetHeuristic(room_.handle, description_.get(), a_.get(),
                                                  b_.get(), y_.get(), y_.get(), preference.get(),
                                                  kCandidates, results, &found),
        "matmul heuristic");
  std::vector<cublasLtMatmulAlgo_t> algorithms;
  for (int i = 0; i < found; ++i)
    if (results[i].state == CUBLAS_STATUS_SUCCESS) algorithms.push_back(results[i].algo);
  HM_ENSURE(!algorithms.empty(), "[cuda] cuBLASLt has no algorithm for [{},{}] x [{},{}]", key.m,
            key.k, key.k, key.n);
  return algorithms;
}

bool Problem::run(const Product& p, int64_t place, const OnDevice& on) const {
  if (p.bias.data != nullptr)
    check(cublaslt().cublasLtMatmulDescSetAttribute(description_.get(),
                                                    CUBLASLT_MATMUL_DESC_BIAS_POINTER, &p.bias.data,
                                                    sizeof p.bias.data),
          "matmul attribute");
  const cublasLtMatmulAlgo_t& algorithm = proposed_[static_cast<size_t>(place)];
  const float beta = p.accumulate ? 1 : 0;
  const cublasStatus_t status = cublaslt().cublasLtMatmul(
      room_.handle, description_.get(), &p.factor, p.b.data, a_.get(), p.a.data, b_.get(), &beta,
      p.y.data, y_.get(), p.y.data, y_.get(), &algorithm, room_.workspace, kWorkspace, on.stream());
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) return false;
  check(status, "matmul");
  return true;
}

void Problem::prefer(int64_t place) {
  if (place < 0 || place >= static_cast<int64_t>(proposed_.size())) return;
  tried_ = true;
  std::erase(best_, place);
  best_.insert(best_.begin(), place);
}

void Problem::look_up() {
  const int64_t generation = Tuning::table().generation();
  if (std::exchange(generation_, generation) == generation) return;
  if (const auto place = Tuning::table().find(key_)) prefer(*place);
}

bool Problem::begins_trial(const Product& p) {
  const std::lock_guard lock(mutex_);
  ++calls_;
  look_up();
  if (tried_ || calls_ == 1 || best_.size() == 1 || p.batch * p.m * p.n * p.k < kWorthMeasuring ||
      gpu::capturing())
    return false;
  tried_ = true;
  const auto place = Tuning::table().find(key_);
  if (place) prefer(*place);
  return !place;
}

// All runs are enqueued behind a pause and without waits, so that the GPU is not idle between an
// event and its run.
std::vector<Trial> Problem::trials_of(const Product& p, const OnDevice& on) {
  const std::lock_guard lock(mutex_);
  std::vector<Trial> trials;
  for (const int64_t place : best_)
    if (run(p, place, on)) trials.push_back({place, {}});  // this also loads its kernel
  pause(on);
  for (auto& [place, events] : trials) {
    events.push_back(recorded(on.stream(), cudaEventDefault));
    for (int i = 0; i < kTimes; ++i) {
      run(p, place, on);
      events.push_back(recorded(on.stream(), cudaEventDefault));
    }
  }
  return trials;
}

void Problem::try_all(Product p, const OnDevice& on) {
  Tensor scratch = scratch_for(p, device_);
  if (!scratch) return;
  p.y = scratch;
  std::vector<Trial> trials = trials_of(p, on);
  if (trials.empty()) return;
  check(cudaEventSynchronize(trials.back().events.back().get()), "event");
  std::ranges::stable_sort(trials, {}, least_time);
  const std::lock_guard lock(mutex_);
  best_.clear();
  for (const Trial& trial : trials) best_.push_back(trial.place);
  prefer(Tuning::table().keep(key_, best_.front()));
}

void Problem::multiply(const Product& p, const OnDevice& on) {
  if (begins_trial(p)) try_all(p, on);
  const std::lock_guard lock(mutex_);
  while (!run(p, best_.front(), on)) {
    HM_ENSURE(best_.size() > 1, "[cuda] cuBLASLt's algorithms refuse [{},{}] x [{},{}]", p.m, p.k,
              p.k, p.n);
    best_.erase(best_.begin());
  }
}

}  // namespace howmany::cuda
