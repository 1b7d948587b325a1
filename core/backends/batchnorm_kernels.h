// SPDX-License-Identifier: Apache-2.0
// The batch norm kernels of a Backend, with the parts that statistics over replicas need.
#pragma once

#include <string_view>

#include "core/ops/args.h"
#include "core/tensor/tensor.h"

namespace howmany {

class BatchNormKernels {
 public:
  virtual ~BatchNormKernels() = default;
  virtual std::string_view name() const = 0;  // of the backend

  // Normalizes over all but the last extent: y = act(scale * xhat + shift), act none or relu. In
  // training, writes batch statistics to mean and inv_std [C] and updates the running ones as
  // torch.nn.BatchNorm2d does: normalizes with the biased variance and keeps the unbiased one.
  virtual void batchnorm(const Tensor& x, const Tensor& scale, const Tensor& shift, Activation act,
                         BatchNormState& state, Tensor& mean, Tensor& inv_std, Tensor& y) const;
  virtual void batchnorm_inference(const Tensor& x, const Tensor& scale, const Tensor& shift,
                                   Activation act, const BatchNormState& state, Tensor& y) const;
  // The parts of batch norm that statistics over replicas need separately. Moments: mean and biased
  // variance [C]. Sums [C] over this replica's rows: dots of dz * xhat, sums of dz. Input: dx from
  // such sums over `rows` rows of all replicas.
  virtual void batchnorm_moments(const Tensor& x, Tensor& mean, Tensor& variance) const;
  virtual void batchnorm_backward_sums(const BatchNormBackward& in, Tensor& dots,
                                       Tensor& sums) const;
  virtual void batchnorm_backward_input(const BatchNormBackward& in, const Tensor& dots,
                                        const Tensor& sums, double rows, Tensor& dx) const;
  // Sync batch norm all-reduces an f64 [2C+1] message; f64 avoids cancellation. The message holds
  // `rows` times the first and second moments (or the backward's dots and sums), then `rows`. From
  // the reduced message, receive_moments computes mean, biased variance and inv_std and updates the
  // running statistics as above; receive_sums computes means over all rows. The default
  // implementations serve CPU backends.
  virtual void batchnorm_send_moments(const Tensor& mean, const Tensor& variance, double rows,
                                      Tensor& message) const;
  virtual void batchnorm_receive_moments(const Tensor& message, BatchNormState& state, Tensor& mean,
                                         Tensor& variance, Tensor& inv_std) const;
  virtual void batchnorm_send_sums(const Tensor& dots, const Tensor& sums, double rows,
                                   Tensor& message) const;
  virtual void batchnorm_receive_sums(const Tensor& message, Tensor& dots, Tensor& sums) const;

 protected:
  [[noreturn]] void unsupported(std::string_view operation) const;  // throws Error
};

}  // namespace howmany
