// SPDX-License-Identifier: Apache-2.0
// Backend: the kernels of one device type.
//
// Arguments. ops.h, which layers call, checks them and allocates outputs. Activations and their
//   gradients have one dtype: f32, f64 or bf16. All other tensors are f32 if it is bf16.
// Support. A backend overrides the operations that it supports. Others throw Error ("[name] op is
//   not supported"). Tests compare every backend with `reference`.
// Execution. A call runs on the calling thread and its device slice (see DeviceScope). GPU work is
//   only enqueued.
// Thread safety. Thread-safe: backends have no state that callers can observe.
// Shapes. N batch, T time, H W C rows, columns and channels of an image. Images are [N,H,W,C],
//   row-major.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/backends/batchnorm_kernels.h"
#include "core/ops/args.h"
#include "core/ops/update.h"
#include "core/tensor/precision.h"
#include "core/tensor/tensor.h"

namespace howmany {

class Backend : public BatchNormKernels {
 public:
  // The library and the instruction set that it uses: "oneDNN 2.6.3, AVX2".
  virtual std::string version() const { return ""; }
  virtual DeviceType device_type() const = 0;
  // Returns why the backend cannot be used here (no GPU), or "" if it can.
  virtual std::string unavailable() const { return ""; }
  virtual bool supports(Dtype dtype) const = 0;  // of activations
  // True if products round their inputs to this precision. If not, they use f32.
  virtual bool computes_in(Precision precision) const { return precision == Precision::f32; }
  // Returns kernels for meta devices that allocate as much as these: packed weights, copies,
  // scratch memory. Null if they are those of meta_backend(). Use them through a BackendScope.
  virtual const Backend* on_meta() const { return nullptr; }

  // y [M,N] = op(a) op(b), where op transposes if requested. Adds to y if `accumulate`.
  virtual void matmul(const Tensor& a, bool transpose_a, const Tensor& b, bool transpose_b,
                      bool accumulate, Tensor& y) const;

  // x [N,in], w [out,in], bias [out] or empty -> y [N,out] = act(x w^T + bias)
  virtual void linear(const Tensor& x, const Tensor& w, const Tensor& bias, Activation act,
                      Tensor& y) const;
  // `kept` is the pre-activation for gelu, else y. dx is not computed if it is empty.
  virtual void linear_backward(const Tensor& x, const Tensor& w, const Tensor& kept,
                               const Tensor& dy, Activation act, Tensor& dx, GradOut& dw,
                               GradOut& dbias) const;

  // x [N,H,W,C], w [out,K,K,C], bias [out] or empty -> y [N,H',W',out]
  virtual void conv2d(const Tensor& x, const Tensor& w, const Tensor& bias, Window window,
                      Tensor& y) const;
  virtual void conv2d_backward(const Tensor& x, const Tensor& w, const Tensor& dy, Window window,
                               Tensor& dx, GradOut& dw, GradOut& dbias) const;

  // y = act(x), elementwise. Backward: dx = dy * act'(kept), where kept is x for gelu, else y.
  virtual void activation(const Tensor& x, Activation act, Tensor& y) const;
  virtual void activation_backward(const Tensor& kept, const Tensor& dy, Activation act,
                                   Tensor& dx) const;
  // y = act(a + b), for residual branches and recurrences. Does not support gelu.
  virtual void add(const Tensor& a, const Tensor& b, Activation act, Tensor& y) const;

  // Normalizes over the last extent. mean and inv_std are [rows].
  virtual void layernorm(const Tensor& x, const Tensor& scale, const Tensor& shift, double epsilon,
                         Tensor& mean, Tensor& inv_std, Tensor& y) const;
  virtual void layernorm_backward(const Tensor& x, const Tensor& scale, const Tensor& dy,
                                  const Tensor& mean, const Tensor& inv_std, Tensor& dx,
                                  GradOut& dscale, GradOut& dshift) const;

  // x [N,..,C]. Normalizes each sample's channels in `groups` groups of adjacent ones, over all of
  // its rows. mean and inv_std are [N * groups].
  virtual void groupnorm(const Tensor& x, int64_t groups, const Tensor& scale, const Tensor& shift,
                         double epsilon, Tensor& mean, Tensor& inv_std, Tensor& y) const;
  virtual void groupnorm_backward(const Tensor& x, int64_t groups, const Tensor& scale,
                                  const Tensor& dy, const Tensor& mean, const Tensor& inv_std,
                                  Tensor& dx, GradOut& dscale, GradOut& dshift) const;

  // Layer norm without a mean or a shift: y = x inv_rms scale. inv_rms is [rows].
  virtual void rmsnorm(const Tensor& x, const Tensor& scale, double epsilon, Tensor& inv_rms,
                       Tensor& y) const;
  virtual void rmsnorm_backward(const Tensor& x, const Tensor& scale, const Tensor& dy,
                                const Tensor& inv_rms, Tensor& dx, GradOut& dscale) const;

  // x [..,2F] holds gates g and values v -> y [..,F] = silu(g) v.
  virtual void swiglu(const Tensor& x, Tensor& y) const;
  virtual void swiglu_backward(const Tensor& x, const Tensor& dy, Tensor& dx) const;

  // x [N,T,(count + 2 kv) size] holds the heads of q, k and v -> y [N,T,3 count size], the qkv of
  // attention(). Channels c and c + size / 2 of a head of q and k are rotated by an angle. A row of
  // `angles` [T,size] holds the cosines of a position, then the sines. Each head of k and v is
  // repeated for its queries. Backward maps dy to dx.
  virtual void rotary(const Tensor& x, const Tensor& angles, GroupedHeads heads, Tensor& y) const;
  virtual void rotary_backward(const Tensor& dy, const Tensor& angles, GroupedHeads heads,
                               Tensor& dx) const;

  // qkv [N,T,3D] holds q, k and v, each D = heads x size. y [N,T,D]: for each head,
  // softmax(q k^T / sqrt(size)) v. lse [N,heads,T] is the log of each row's sum of exponentials.
  // Backward recomputes the probabilities from it, as FlashAttention does, so that no [T,T] matrix
  // outlives a call.
  virtual void attention(const Tensor& qkv, Heads heads, Tensor& lse, Tensor& y) const;
  virtual void attention_backward(const Tensor& qkv, const Tensor& y, const Tensor& lse,
                                  const Tensor& dy, Heads heads, Tensor& dqkv) const;

  // x [N,H,W,C] -> y [N,H',W',C]. chosen (i32, shape of y) is the flat H*W index of the maximum,
  // the first one if several are equal.
  virtual void max_pool(const Tensor& x, Window window, Tensor& chosen, Tensor& y) const;
  virtual void max_pool_backward(const Tensor& chosen, const Tensor& dy, Window window,
                                 Tensor& dx) const;
  // Padding counts as zeros in the mean, as in torch.nn.AvgPool2d.
  virtual void avg_pool(const Tensor& x, Window window, Tensor& y) const;
  virtual void avg_pool_backward(const Tensor& dy, Window window, Tensor& dx) const;

  // ids [..] i64, table [V,D] -> y [..,D]. The table has the rows of ids [first, first + V). The
  // rows of other ids are 0, and backward skips them. It adds the rows of repeated ids.
  virtual void embedding(const Tensor& ids, const Tensor& table, int64_t first, Tensor& y) const;
  virtual void embedding_backward(const Tensor& ids, const Tensor& dy, int64_t first,
                                  GradOut& dtable) const;
  // y = x * keep / (1 - p). Backward is the same function of dy.
  virtual void dropout(const Tensor& x, double p, DropoutKey key, Tensor& y) const;

  // logits [N,K], labels i64 [N]. Returns f64 [1] on their device: the sum over rows of
  // -log softmax[label] / denominator. dlogits is its gradient.
  virtual Tensor softmax_cross_entropy(const Tensor& logits, const Tensor& labels,
                                       double denominator, Tensor& dlogits) const;
  // The same if logits [N,K] are those of labels [first, first + K), and other ranks have the rest.
  // part [N,2]: the log of each row's sum of exponentials, and the logit of its label, or 0 if
  // another rank has it. all [R,N,2]: the parts of all ranks.
  virtual void cross_entropy_part(const Tensor& logits, const Tensor& labels, int64_t first,
                                  Tensor& part) const;
  virtual Tensor cross_entropy_of_parts(const Tensor& logits, const Tensor& labels, int64_t first,
                                        const Tensor& all, double denominator,
                                        Tensor& dlogits) const;
  // Returns the sum of (y - target)^2 / denominator. Targets are f32 if y is bf16.
  virtual Tensor mse(const Tensor& y, const Tensor& target, double denominator, Tensor& dy) const;

  // Requires: all parameters are on one device.
  virtual void sgd(std::span<SgdParam> params, const SgdArgs& args) const;
  virtual void adam(std::span<AdamParam> params, const AdamArgs& args) const;
  virtual void axpy(double alpha, const Tensor& x, Tensor& y) const;  // y += alpha x
};

}  // namespace howmany
