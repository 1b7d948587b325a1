// SPDX-License-Identifier: Apache-2.0
// The oneDNN backend: f32 on CPU, and bf16 inputs of products. Operations are defined by kind in
// matmul.cpp, conv.cpp, batchnorm.cpp, ... Memory-bound operations are our own loops (loops.h); the
// rest are cached primitives (primitives.h). Private to this folder.
#pragma once

#include "core/backends/backend.h"

namespace howmany::onednn {

class OneDnn : public Backend {
 public:
  std::string_view name() const override { return "onednn"; }
  std::string version() const override;
  DeviceType device_type() const override { return DeviceType::cpu; }
  bool supports(Dtype dtype) const override { return dtype == Dtype::f32; }
  // bf16 if this CPU multiplies it and ONEDNN_MAX_CPU_ISA allows it.
  bool computes_in(Precision precision) const override;
  const Backend* on_meta() const override;

#include "core/backends/kernels.inc"
};

}  // namespace howmany::onednn
