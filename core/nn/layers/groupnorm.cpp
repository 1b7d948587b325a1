// SPDX-License-Identifier: Apache-2.0
#include "core/nn/layers/norm.h"

namespace howmany::layers {
namespace {

// Wu and He, "Group normalization" (2018); torch.nn.GroupNorm, with channels last.
class GroupNorm final : public Norm {
 public:
  GroupNorm(int64_t groups, int64_t channels, double epsilon)
      : Norm("groupnorm", channels), groups_(groups), epsilon_(epsilon) {
    HM_REQUIRE(groups > 0 && channels % groups == 0 && epsilon > 0,
               "[groupnorm] {} groups of {} channels, epsilon {}", groups, channels, epsilon);
  }

  std::string describe() const override {
    return fmt::format("groupnorm({}, {})", groups_, channels());
  }
  LayerPtr clone() const override { return groupnorm(groups_, channels(), epsilon_); }

 private:
  ops::Normalized normalize(const Tensor& x, Tape&) override {
    return ops::groupnorm(x, groups_, scale().value, shift().value, epsilon_);
  }
  Tensor gradient(const Tensor& x, const ops::Normalized& kept, const Tensor& dy, Tape&) override {
    return ops::groupnorm_backward(x, groups_, scale().value, kept, dy, grad_out(scale()),
                                   grad_out(shift()));
  }

  int64_t groups_;
  double epsilon_;
};

}  // namespace

LayerPtr groupnorm(int64_t groups, int64_t channels, double epsilon) {
  return std::make_unique<GroupNorm>(groups, channels, epsilon);
}

}  // namespace howmany::layers
