// Checked tensor functions: they refuse bad shapes (std::invalid_argument, before any side effect),
// allocate the result, name the NVTX range and call the backend of the first argument. Forward and
// backward stand side by side. Shapes and meaning are those of backend.h. Activations and their
// gradients come out as stored() has them, and go in either so or in f32. Thread-safe as long as
// outputs are not shared.
#pragma once

#include "core/backends/backend.h"

namespace howmany::ops {

// An activation, or the gradient of one, in the type that the thread's precision stores it in there
// (stored_dtype): this handle or a rounded copy. A batch that is stored so once is not rounded by
// each operation that reads it.
Tensor stored(const Tensor& activation);

// Of matrices as they are: the result has their type.
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
// With `sum` the statistics are those of all replicas' rows; every replica makes the same calls.
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

struct Attended {
  Tensor y, lse;
};
Attended attention(const Tensor& qkv, Heads heads);
Tensor attention_backward(const Tensor& qkv, const Attended& forward, const Tensor& dy,
                          Heads heads);
// Multiply and add count as two. Half of all pairs when causal, as FlashAttention counts: the
// masked ones are no work (PaLM and torch's counter count them).
double attention_flop(const Shape& qkv, Heads heads);

Shape pool_shape(const char* op, const Shape& x, Window window);
struct Pooled {
  Tensor y, chosen;
};
Pooled max_pool(const Tensor& x, Window window);
Tensor max_pool_backward(const Tensor& chosen, const Tensor& dy, Window window, const Shape& x);
Tensor avg_pool(const Tensor& x, Window window);
Tensor avg_pool_backward(const Tensor& dy, Window window, const Shape& x);

Tensor embedding(const Tensor& ids, const Tensor& table);
void embedding_backward(const Tensor& ids, const Tensor& dy, GradOut dtable);
Tensor dropout(const Tensor& x, double p, DropoutKey key);

void axpy(double alpha, const Tensor& x, Tensor& y);

}  // namespace howmany::ops
