// Convolutions and attention by cuDNN, opened at run time: where it is not, or has no engine for a
// problem, the caller goes its own way. The engine of a problem is the fastest of the first few
// that cuDNN advises, each tried on the problem's own data. Sums are f32, results f32 or bf16;
// inputs are read in the precision of the calling thread, and where a tensor is stored in bf16 in
// that; in f32 no tensor core rounds them. An engine gives the same result each time, but the next
// run may choose another. A gradient of weights is asked for as its inputs are stored, see conv.cu.
// Thread-safe. Private to core/backends/cuda.
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

// Each is false when it was not done; what it would have written may then hold anything.
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

// Of tensors in bf16 only: probabilities are rounded to bf16 as well. lse is f32. False as above.
bool dnn_attention(const Attention& sizes, const Tensor& qkv, Tensor& lse, Tensor& y,
                   const OnDevice& on);
bool dnn_attention_backward(const Attention& sizes, const Tensor& qkv, const Tensor& y,
                            const Tensor& lse, const Tensor& dy, Tensor& dqkv, const OnDevice& on);

// Of which the backward pass is taken together, so that what cuDNN keeps, quadratic in times, has
// room: equal parts, at least one sample. For tests: in how many bytes.
int64_t samples_at_once(const Attention& sizes);
void set_room_for_scores(int64_t bytes);

bool dnn_is_opened();
std::string dnn_version();  // "cuDNN 9.19.0", or "no cuDNN"

}  // namespace howmany::cuda
