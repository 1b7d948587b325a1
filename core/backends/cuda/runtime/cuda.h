// SPDX-License-Identifier: Apache-2.0
// The CUDA backend: cuBLASLt, cuDNN and own kernels. Private to core/backends/cuda.
//
// Dtypes. Activations are f32 or bf16. Parameters, statistics and sums are f32. Products and
//   convolutions read f32 inputs in the thread's precision (core/tensor/precision.h).
// Ordering. An operation is enqueued on the GPU's stream and returns. Work that is enqueued later
//   on the same GPU sees its result.
#pragma once

#include "core/backends/backend.h"

namespace howmany::backends {

class Cuda final : public Backend {
 public:
  std::string_view name() const override { return "cuda"; }
  std::string version() const override;
  DeviceType device_type() const override { return DeviceType::cuda; }
  std::string unavailable() const override;
  bool supports(Dtype dtype) const override { return dtype == Dtype::f32 || dtype == Dtype::bf16; }

  void batchnorm_send_moments(const Tensor& mean, const Tensor& variance, double rows,
                              Tensor& message) const override;
  void batchnorm_receive_moments(const Tensor& message, BatchNormState& state, Tensor& mean,
                                 Tensor& variance, Tensor& inv_std) const override;
  void batchnorm_send_sums(const Tensor& dots, const Tensor& sums, double rows,
                           Tensor& message) const override;
  void batchnorm_receive_sums(const Tensor& message, Tensor& dots, Tensor& sums) const override;

#include "core/backends/kernels.inc"
};

}  // namespace howmany::backends
