// SPDX-License-Identifier: Apache-2.0
// Checked tensor functions. Each checks its arguments, allocates the result, opens a profiler range
// and calls the backend of its first argument. Shapes and semantics are those of backend.h.
//
// Failure. Throws std::invalid_argument if a shape is wrong, before any side effect.
// Precision. Activations and their gradients may be f32 or stored(). Results are stored().
// Thread safety. Thread-safe if no two calls write the same tensor.
#pragma once

#include "core/backends/backend.h"

namespace howmany::ops {

// Converts an activation or its gradient to the dtype that the thread's precision prescribes on its
// device (stored_dtype). Returns this handle if it has that dtype. Convert a batch once, so that
// not every operation that reads it rounds it again.
Tensor stored(const Tensor& activation);

// Does not convert its inputs: the result has their dtype.
Tensor matmul(const Tensor& a, const Tensor& b, bool transpose_a = false, bool transpose_b = false);

Tensor linear(const Tensor& x, const Tensor& w, const Tensor& bias, Activation act);
Tensor linear_backward(const Tensor& x, const Tensor& w, const Tensor& kept, const Tensor& dy,
                       Activation act, bool want_dx, GradOut dw, GradOut dbias);

Shape conv2d_shape(const Shape& x, int64_t out_channels, Window window);
Tensor conv2d(const Tensor& x, const Tensor& w, const Tensor& bias, Window window);
Tensor conv2d_backward(const Tensor& x, const Tensor& w, const Tensor& dy, Window window,
                       bool want_dx, GradOut dw, GradOut dbias);

Tensor activation(const Tensor& x, Activation act);
Tensor activation_backward(const Tensor& kept, const Tensor& dy, Activation act);
Tensor add(const Tensor& a, const Tensor& b, Activation act = Activation::none);

struct Normalized {
  Tensor y, mean, inv_std;
};
// If `sum` is set, the statistics are over the rows of all replicas, and every replica must make
// the same calls.
Normalized batchnorm(const Tensor& x, const Tensor& scale, const Tensor& shift, Activation act,
                     BatchNormState& state, const SumOverReplicas& sum = {});
Tensor batchnorm_inference(const Tensor& x, const Tensor& scale, const Tensor& shift,
                           Activation act, const BatchNormState& state);
Tensor batchnorm_backward(const Tensor& x, const Tensor& scale, const Tensor& shift,
                          const Normalized& forward, const Tensor& dy, Activation act,
                          GradOut dscale, GradOut dshift, const SumOverReplicas& sum = {});
Normalized layernorm(const Tensor& x, const Tensor& scale, const Tensor& shift, double epsilon);
Tensor layernorm_backward(const Tensor& x, const Tensor& scale, const Normalized& forward,
                          const Tensor& dy, GradOut dscale, GradOut dshift);

Normalized groupnorm(const Tensor& x, int64_t groups, const Tensor& scale, const Tensor& shift,
                     double epsilon);
Tensor groupnorm_backward(const Tensor& x, int64_t groups, const Tensor& scale,
                          const Normalized& forward, const Tensor& dy, GradOut dscale,
                          GradOut dshift);

struct RmsNormalized {
  Tensor y, inv_rms;
};
RmsNormalized rmsnorm(const Tensor& x, const Tensor& scale, double epsilon);
Tensor rmsnorm_backward(const Tensor& x, const Tensor& scale, const Tensor& inv_rms,
                        const Tensor& dy, GradOut dscale);

Tensor swiglu(const Tensor& x);
Tensor swiglu_backward(const Tensor& x, const Tensor& dy);

Tensor rotary(const Tensor& x, const Tensor& angles, GroupedHeads heads);
Tensor rotary_backward(const Tensor& dy, const Tensor& angles, GroupedHeads heads);

struct Attended {
  Tensor y, lse;
};
Attended attention(const Tensor& qkv, Heads heads);
Tensor attention_backward(const Tensor& qkv, const Attended& forward, const Tensor& dy,
                          Heads heads);
// Multiply and add count as two. If causal, half of all pairs count, as in FlashAttention: masked
// pairs are not computed. (PaLM and torch's counter include them.)
double attention_flop(const Shape& qkv, Heads heads);

Shape pool_shape(const char* op, const Shape& x, Window window);
struct Pooled {
  Tensor y, chosen;
};
Pooled max_pool(const Tensor& x, Window window);
Tensor max_pool_backward(const Tensor& chosen, const Tensor& dy, Window window, const Shape& x);
Tensor avg_pool(const Tensor& x, Window window);
Tensor avg_pool_backward(const Tensor& dy, Window window, const Shape& x);

// The rows [first, first + V) of a table of `all` rows. By default the table is whole.
struct TableRows {
  int64_t first = 0, all = 0;
};
Tensor embedding(const Tensor& ids, const Tensor& table, TableRows rows = {});
void embedding_backward(const Tensor& ids, const Tensor& dy, GradOut dtable, TableRows rows = {});
Tensor dropout(const Tensor& x, double p, DropoutKey key);

void axpy(double alpha, const Tensor& x, Tensor& y);

}  // namespace howmany::ops
