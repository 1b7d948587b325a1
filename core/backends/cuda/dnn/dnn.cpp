// SPDX-License-Identifier: Apache-2.0
#include "core/backends/cuda/dnn/dnn.h"

#include <array>
#include <vector>

#include "core/backends/cuda/blas/blas.h"
#include "core/backends/cuda/blas/halves.h"
#include "core/backends/cuda/dnn/graphs.h"
#include "core/backends/cuda/dnn/library.h"
#include "core/backends/cuda/dnn/plan.h"
#include "core/base/error.h"
#include "core/gpu/gpu.h"
#include "core/tensor/precision.h"

namespace howmany::cuda {
namespace {

using dnn::ConvolutionProblem;
using dnn::Pass;

int64_t aligned(const void* p) { return std::min<int64_t>(alignment_of(p), 16); }

std::vector<int64_t> key_of(const ConvolutionProblem& p, Precision precision) {
  const Convolution& s = p.sizes;
  return {static_cast<int64_t>(p.pass),
          static_cast<int64_t>(precision),
          s.images,
          s.height,
          s.width,
          s.channels,
          s.out,
          s.out_height,
          s.out_width,
          s.window.size,
          s.window.stride,
          s.window.padding,
          p.alignments[0],
          p.alignments[1],
          p.alignments[2],
          p.bias ? p.bias_alignment : 0,
          p.half_result ? 1 : 0};
}

const char* name_of(Pass pass) {
  return pass == Pass::forward         ? "forward"
         : pass == Pass::backward_data ? "backward_data"
                                       : "backward_filter";
}

std::string described(const ConvolutionProblem& p, Precision precision) {
  const Convolution& s = p.sizes;
  return fmt::format("{} of a convolution in {}, [{},{},{},{}] to {} channels, {}x{}",
                     name_of(p.pass), howmany::name_of(precision), s.images, s.height, s.width,
                     s.channels, s.out, s.window.size, s.window.size);
}

struct Call {
  Pass pass;
  std::array<const Tensor*, 2> inputs;
  const float* bias;
  Tensor* result;
};

bool is_half(const Tensor& t) { return t.dtype() == Dtype::bf16; }

// The precision of the whole operation.
Precision precision_of(const Call& call) {
  const bool half = is_half(*call.inputs[0]) || is_half(*call.inputs[1]) || is_half(*call.result);
  return half ? Precision::bf16 : current_precision();
}

// Returns t or its cached bf16 copy. `kept` must live until the engine is enqueued.
const void* as_read(const Tensor& t, bool halves, Half& kept, const OnDevice& on) {
  if (!halves) return t.raw();
  kept = half_of(t, on);
  return kept.data;
}

bool compute(const Convolution& sizes, const Call& call, const OnDevice& on) {
  if (!dnn_is_opened() || sizes.images == 0) return false;
  const Precision precision = precision_of(call);
  ConvolutionProblem problem{call.pass, sizes, precision == Precision::bf16, is_half(*call.result),
                             call.bias != nullptr};
  for (size_t i : {0, 1})  // copies are aligned
    if (!problem.halves || is_half(*call.inputs[i]))
      problem.alignments[i] = aligned(call.inputs[i]->raw());
  void* const result = call.result->mutable_raw();
  problem.alignments[2] = aligned(result);
  problem.bias_alignment = aligned(call.bias);
  std::array<Half, 2> kept;
  const auto places = [&] {
    dnn::Places all;
    for (size_t i : {0, 1})
      all.push_back(const_cast<void*>(as_read(*call.inputs[i], problem.halves, kept[i], on)));
    if (problem.bias) all.push_back(const_cast<float*>(call.bias));
    all.push_back(result);
    return all;
  };
  return dnn::compute(
      {key_of(problem, precision), precision != Precision::f32,
       [&] { return dnn::graph_of(problem); }, [&] { return described(problem, precision); }},
      places, call.result->device(), on);
}

}  // namespace

bool dnn_forward(const Convolution& sizes, const Tensor& x, const Tensor& w, const float* bias,
                 Tensor& y, const OnDevice& on) {
  return compute(sizes, {Pass::forward, {&x, &w}, bias, &y}, on);
}
bool dnn_backward_data(const Convolution& sizes, const Tensor& w, const Tensor& dy, Tensor& dx,
                       const OnDevice& on) {
  return compute(sizes, {Pass::backward_data, {&w, &dy}, nullptr, &dx}, on);
}
bool dnn_backward_filter(const Convolution& sizes, const Tensor& x, const Tensor& dy, Tensor& dw,
                         const OnDevice& on) {
  return compute(sizes, {Pass::backward_filter, {&x, &dy}, nullptr, &dw}, on);
}

void dnn_use_tuning() { dnn::use_tuning(); }

bool dnn_is_opened() {
  static const bool opened = [] {
    try {
      return dnn::library().cudnnGetVersion() > 0;
    } catch (const Error& error) {
      dnn::add_fallback("convolutions and attention", error.what());
      return false;
    }
  }();
  return opened;
}

std::string dnn_version() {
  if (!dnn_is_opened()) return "no cuDNN";
  const size_t v = dnn::library().cudnnGetVersion();
  const std::string name = fmt::format("cuDNN {}.{}.{}", v / 10'000, v / 100 % 100, v % 100);
  if (gpu::count() == 0 || dnn::serves(0)) return name;
  return "no " + name + ", which refuses this GPU";
}

}  // namespace howmany::cuda
