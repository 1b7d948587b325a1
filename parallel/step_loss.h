// The loss of a training step, which may still be on its way from a GPU: asking for it waits for
// that step, and for nothing that was asked for later, so that who asks a step late never stops the
// GPU. It throws what failed in the communication that the loss came of, like CommError. Values:
// copies are of one loss. One thread.
//
//   StepLoss loss = mode->step(batch);
//   optimizer->step(mode->params());
//   print(loss.value());
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "core/gpu/gpu.h"
#include "core/tensor/tensor.h"
#include "parallel/comm.h"

namespace howmany {

class StepLoss {
 public:
  StepLoss(double known = 0) : known_(known) {}
  // f32 or f64 [1], on any device; its memory may be written again by whatever is asked for later.
  // after: the last call of a Comm that it came of, which has been waited for.
  explicit StepLoss(const Tensor& total, Work after = {});
  void add(Work after) { after_.push_back(std::move(after)); }  // it came of this call as well

  double value() const;  // waits, where it is not known yet; any number of times

 private:
  double known_ = 0;
  Dtype dtype_ = Dtype::f64;
  std::optional<gpu::Fetch> coming_;
  std::vector<Work> after_;
};

}  // namespace howmany
