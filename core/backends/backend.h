// The kernels of one device type. Stateless towards the caller and thread-safe: a call runs in the
// calling thread on its device slice (see DeviceScope). Arguments were checked by ops.h, which is
// what layers call; outputs are allocated. Activations and their gradients have one type, which is
// f32, f64 or bf16; beside bf16 the rest is f32. A backend overrides what it supports; the rest
// says "[name] op is not supported". `reference` is the oracle for all. Legend of shapes: N batch,
// T time, H W C rows, columns and channels of an image (images are [N,H,W,C], row-major).
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/ops/args.h"
#include "core/ops/update.h"
#include "core/tensor/tensor.h"

namespace howmany {

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;
  // The library that computes and what of the processor it uses: "oneDNN 2.6.3, AVX2".
  virtual std::string version() const { return ""; }
  virtual DeviceType device_type() const = 0;
  // Why nothing can be computed here (no GPU); empty when it can.
  virtual std::string unavailable() const { return ""; }
  virtual bool supports(Dtype dtype) const = 0;  // of activations

  // y [M,N] = op(a) op(b), op transposing when asked; adds to y when accumulate.
  virtual void matmul(const Tensor& a, bool transpose_a, const Tensor& b, bool transpose_b,
                      bool accumulate, Tensor& y) const;

  // x [N,in], w [out,in], bias [out] or empty -> y [N,out] = act(x w^T + bias)
  virtual void linear(const Tensor& x, const Tensor& w, const Tensor& bias, Activation act,
                      Tensor& y) const;
  // `kept` is the pre-activation for gelu, y for the others. dx may be empty: not wanted.
  virtual void linear_backward(const Tensor& x, const Tensor& w, const Tensor& kept,
                               const Tensor& dy, Activation act, Tensor& dx, GradOut& dw,
                               GradOut& dbias) const;

  // x [N,H,W,C], w [out,K,K,C], bias [out] or empty -> y [N,H',W',out]
  virtual void conv2d(const Tensor& x, const Tensor& w, const Tensor& bias, Window window,
                      Tensor& y) const;
  virtual void conv2d_backward(const Tensor& x, const Tensor& w, const Tensor& dy, Window window,
                               Tensor& dx, GradOut& dw, GradOut& dbias) const;

  // y = act(x), elementwise; backward takes x for gelu, else y: dx = dy * act'(kept)
  virtual void activation(const Tensor& x, Activation act, Tensor& y) const;
  virtual void activation_backward(const Tensor& kept, const Tensor& dy, Activation act,
                                   Tensor& dx) const;
  // y = act(a + b), act not gelu: the residual join, a step of a recurrence
  virtual void add(const Tensor& a, const Tensor& b, Activation act, Tensor& y) const;

  // Over all but the last extent. Training: batch statistics into mean and inv_std [C], and the
  // running ones move as in torch.nn.BatchNorm2d (biased variance normalises, unbiased is kept). y
  // = act(scale * xhat + shift), act none or relu.
  virtual void batchnorm(const Tensor& x, const Tensor& scale, const Tensor& shift, Activation act,
                         BatchNormState& state, Tensor& mean, Tensor& inv_std, Tensor& y) const;
  virtual void batchnorm_inference(const Tensor& x, const Tensor& scale, const Tensor& shift,
                                   Activation act, const BatchNormState& state, Tensor& y) const;
  // Statistics over replicas take these apart: mean and biased variance [C]; dots [C], the sum of
  // dz xhat over the rows, and sums [C], of dz; dx from such sums over `rows` rows of all replicas.
  virtual void batchnorm_moments(const Tensor& x, Tensor& mean, Tensor& variance) const;
  virtual void batchnorm_backward_sums(const BatchNormBackward& in, Tensor& dots,
                                       Tensor& sums) const;
  virtual void batchnorm_backward_input(const BatchNormBackward& in, const Tensor& dots,
                                        const Tensor& sums, double rows, Tensor& dx) const;
  // What replicas sum is f64 [2C+1], so that what their squares differ in does not drown: of `rows`
  // rows the first and second moment times them, or the backward's sums; then the rows. Of what was
  // summed come mean, biased variance and inv_std, the running ones move as above; or the means of
  // the backward's sums. Backends of CPUs need not have these.
  virtual void batchnorm_send_moments(const Tensor& mean, const Tensor& variance, double rows,
                                      Tensor& message) const;
  virtual void batchnorm_receive_moments(const Tensor& message, BatchNormState& state, Tensor& mean,
                                         Tensor& variance, Tensor& inv_std) const;
  virtual void batchnorm_send_sums(const Tensor& dots, const Tensor& sums, double rows,
                                   Tensor& message) const;
  virtual void batchnorm_receive_sums(const Tensor& message, Tensor& dots, Tensor& sums) const;
  // Over the last extent; mean and inv_std [rows]
  virtual void layernorm(const Tensor& x, const Tensor& scale, const Tensor& shift, double epsilon,
                         Tensor& mean, Tensor& inv_std, Tensor& y) const;
  virtual void layernorm_backward(const Tensor& x, const Tensor& scale, const Tensor& dy,
                                  const Tensor& mean, const Tensor& inv_std, Tensor& dx,
                                  GradOut& dscale, GradOut& dshift) const;

  // qkv [N,T,3D]: q, k and v, each D = heads x size -> y [N,T,D]: by head, softmax(q k^T /
  // sqrt(size)) v. Kept is lse [N,heads,T], the log of each row's sum of exponentials: from it
  // backward computes the probabilities again, as FlashAttention does, so that no [T,T] outlives a
  // call.
  virtual void attention(const Tensor& qkv, Heads heads, Tensor& lse, Tensor& y) const;
  virtual void attention_backward(const Tensor& qkv, const Tensor& y, const Tensor& lse,
                                  const Tensor& dy, Heads heads, Tensor& dqkv) const;

  // x [N,H,W,C] -> y [N,H',W',C]; chosen [same as y] i32 is the flat H*W index of the winner (the
  // first on ties)
  virtual void max_pool(const Tensor& x, Window window, Tensor& chosen, Tensor& y) const;
  virtual void max_pool_backward(const Tensor& chosen, const Tensor& dy, Window window,
                                 Tensor& dx) const;
  // Padding counts as zeros in the mean, as in torch.nn.AvgPool2d.
  virtual void avg_pool(const Tensor& x, Window window, Tensor& y) const;
  virtual void avg_pool_backward(const Tensor& dy, Window window, Tensor& dx) const;

  // ids [..] i64, table [V,D] -> y [..,D]; backward adds rows (repeated ids add up)
  virtual void embedding(const Tensor& ids, const Tensor& table, Tensor& y) const;
  virtual void embedding_backward(const Tensor& ids, const Tensor& dy, GradOut& dtable) const;
  // y = x * keep / (1 - p); its backward is itself on dy
  virtual void dropout(const Tensor& x, double p, DropoutKey key, Tensor& y) const;

  // logits [N,K], labels [N] i64 -> f64 [1] on their device, the sum over rows of
  // -log softmax[label] / denominator; dlogits is its gradient
  virtual Tensor softmax_cross_entropy(const Tensor& logits, const Tensor& labels,
                                       double denominator, Tensor& dlogits) const;
  // sum of (y - target)^2 / denominator; targets beside y in bf16 are f32
  virtual Tensor mse(const Tensor& y, const Tensor& target, double denominator, Tensor& dy) const;

  // All parameters lie on one device.
  virtual void sgd(std::span<SgdParam> params, const SgdArgs& args) const;
  virtual void adam(std::span<AdamParam> params, const AdamArgs& args) const;
  virtual void axpy(double alpha, const Tensor& x, Tensor& y) const;  // y += alpha x
};

std::vector<std::string_view> backend_names();
// Throws std::invalid_argument for a name not built in, listing those that are.
const Backend& backend_named(std::string_view name);
// The backend that computes on `t`: the innermost BackendScope of this thread when it is for such
// devices, else the best built in for the device; f64 goes to reference, on cpu devices only.
const Backend& backend_for(const Tensor& t);

// Chooses the backend of the calling thread for devices of its type until destroyed.
class BackendScope {
 public:
  explicit BackendScope(const Backend& backend);
  ~BackendScope();
  BackendScope(const BackendScope&) = delete;
  BackendScope& operator=(const BackendScope&) = delete;

 private:
  const Backend* outer_;
};

}  // namespace howmany
