// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "core/base/error.h"
#include "core/nn/layers.h"
#include "core/ops/ops.h"

namespace howmany::layers {
namespace {

// Wu and He, "Group normalization" (2018); torch.nn.GroupNorm, with channels last.
class GroupNorm final : public Layer {
 public:
  GroupNorm(int64_t groups, int64_t channels, double epsilon)
      : groups_(groups),
        channels_(channels),
        epsilon_(epsilon),
        params_{Param{.name = "weight", .shape = {channels}, .init = {Init::constant, 1}},
                Param{.name = "bias", .shape = {channels}}} {
    HM_REQUIRE(groups > 0 && channels > 0 && channels % groups == 0 && epsilon > 0,
               "[groupnorm] {} groups of {} channels, epsilon {}", groups, channels, epsilon);
  }

  Tensor forward(const Tensor& x, Tape& tape) override {
    output_shape(x.shape());
    const ops::Normalized out = ops::groupnorm(x, groups_, scale().value, shift().value, epsilon_);
    if (!tape.training()) return out.y;
    tape.used(scale());
    tape.used(shift());
    tape.push(x);
    tape.push(out.mean);
    tape.push(out.inv_std);
    return out.y;
  }

  Tensor backward(const Tensor& dy, Tape& tape) override {
    ops::Normalized kept;
    kept.inv_std = tape.pop();
    kept.mean = tape.pop();
    const Tensor x = tape.pop();
    Tensor dx = ops::groupnorm_backward(x, groups_, scale().value, kept, dy, grad_out(scale()),
                                        grad_out(shift()));
    tape.done(scale());
    tape.done(shift());
    return dx;
  }

  Shape output_shape(const Shape& x) const override {
    HM_REQUIRE(x.rank() >= 2 && x[-1] == channels_,
               "[groupnorm] x has shape {}, expected [N,..,{}]", x.str(), channels_);
    return x;
  }
  double forward_flop(const Shape& x) const override { return 8 * static_cast<double>(x.numel()); }
  std::string describe() const override {
    return fmt::format("groupnorm({}, {})", groups_, channels_);
  }
  LayerPtr clone() const override { return groupnorm(groups_, channels_, epsilon_); }
  std::span<Param> own_params() override { return params_; }

 private:
  Param& scale() { return params_[0]; }
  Param& shift() { return params_[1]; }

  int64_t groups_, channels_;
  double epsilon_;
  std::array<Param, 2> params_;
};

}  // namespace

LayerPtr groupnorm(int64_t groups, int64_t channels, double epsilon) {
  return std::make_unique<GroupNorm>(groups, channels, epsilon);
}

}  // namespace howmany::layers
