// SPDX-License-Identifier: Apache-2.0
#include "parallel/sync/step_loss.h"

#include "core/base/error.h"

namespace howmany {

StepLoss::StepLoss(const Tensor& total, Work after)
    : dtype_(total.dtype()), after_{std::move(after)} {
  HM_REQUIRE(total && total.numel() == 1 && (dtype_ == Dtype::f32 || dtype_ == Dtype::f64),
             "[step] a loss of {} {}", name_of(dtype_), total.shape().str());
  if (total.device().type != DeviceType::cuda)
    known_ = total.item();
  else
    coming_.emplace(total.raw(), total.bytes(), total.device().index);
}

double StepLoss::value() const {
  if (!coming_) return known_;
  for (const Work& call : after_) call.finish();  // a GPU continues even if a call failed
  const void* const bytes = coming_->wait();
  return dtype_ == Dtype::f32 ? static_cast<double>(*static_cast<const float*>(bytes))
                              : *static_cast<const double*>(bytes);
}

}  // namespace howmany
