// SPDX-License-Identifier: Apache-2.0
// The loss of a training step, which a GPU may still be computing. value() blocks until that step
// completes, but not for work submitted later. A caller that reads it one step late never stalls
// the GPU. Copies refer to the same loss. One thread at a time.
//
//   StepLoss loss = mode->step(batch);
//   optimizer->step(mode->params());
//   print(loss.value());
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "core/gpu/gpu.h"
#include "core/gpu/stream.h"
#include "core/tensor/tensor.h"
#include "parallel/comm/comm.h"

namespace howmany {

class StepLoss {
 public:
  StepLoss(double known = 0) : known_(known) {}
  // total: f32 or f64 [1] on any device. Work submitted later may overwrite its memory.
  // after: the last call of a Comm that the loss depends on. Requires after.wait() before.
  explicit StepLoss(const Tensor& total, Work after = {});
  void add(Work after) { after_.push_back(std::move(after)); }  // another call it depends on

  double value() const;  // blocks until known; rethrows failures of the calls, such as CommError

 private:
  double known_ = 0;
  Dtype dtype_ = Dtype::f64;
  std::optional<gpu::Fetch> coming_;
  std::vector<Work> after_;
};

}  // namespace howmany
