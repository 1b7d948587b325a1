// SPDX-License-Identifier: Apache-2.0
// Convolutions and attention by cuDNN, which is opened at run time. Thread-safe. Private to
// core/backends/cuda.
//
// Fallback. If cuDNN is missing or has no engine for a problem, the caller uses its own kernels.
// Engine. The fastest of the first few that cuDNN's heuristics propose, measured on the problem's
//   own data. An engine is deterministic, but another run of the program may choose another one.
//   All GPUs of a kind in a process use the same (core/gpu/tuning.h).
// Dtypes. Sums are f32, results f32 or bf16. f32 inputs are read in the precision of the calling
//   thread, bf16 inputs in bf16. At precision f32 no tensor core rounds the inputs. Weight
//   gradients read their inputs as stored, see conv.cu.
#pragma once

#include <cstdint>
#include <string>

#include "core/backends/backend.h"
#include "core/backends/cuda/runtime/runtime.h"

namespace howmany::cuda {

struct Convolution {  // x [N,H,W,C], w [out,K,K,C], y [N,H',W',out], as in core/backends/backend.h
  int64_t images, height, width, channels, out, out_height, out_width;
  Window window;
};

// Each returns false if cuDNN did not run it. Then the outputs are undefined.
bool dnn_forward(const Convolution& sizes, const Tensor& x, const Tensor& w,
                 const float* bias,  // or null
                 Tensor& y, const OnDevice& on);
bool dnn_backward_data(const Convolution& sizes, const Tensor& w, const Tensor& dy, Tensor& dx,
                       const OnDevice& on);
bool dnn_backward_filter(const Convolution& sizes, const Tensor& x, const Tensor& dy, Tensor& dw,
                         const OnDevice& on);

struct Attention {  // qkv [N,T,3 heads size], as in core/backends/backend.h
  int64_t samples, times, heads, size;
  bool causal;
};

// For bf16 tensors only. Probabilities are rounded to bf16, too. lse is f32. They return false as
// above.
bool dnn_attention(const Attention& sizes, const Tensor& qkv, Tensor& lse, Tensor& y,
                   const OnDevice& on);
bool dnn_attention_backward(const Attention& sizes, const Tensor& qkv, const Tensor& y,
                            const Tensor& lse, const Tensor& dy, Tensor& dqkv, const OnDevice& on);

// Returns the number of samples per call of the backward pass, at least 1, in equal parts. It
// limits cuDNN's scratch memory, which is quadratic in `times`. Tests set the limit in bytes.
int64_t samples_at_once(const Attention& sizes);
void set_room_for_scores(int64_t bytes);

void dnn_use_tuning();  // of gpu::use_tuning(): makes the plans that exist those of the table
bool dnn_is_opened();
std::string dnn_version();  // "cuDNN 9.19.0", or "no cuDNN"

}  // namespace howmany::cuda
