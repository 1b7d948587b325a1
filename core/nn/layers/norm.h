// SPDX-License-Identifier: Apache-2.0
// The base of the layers that subtract a mean, divide by a deviation, and then scale and shift each
// channel. Private to core/nn.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/nn/layers.h"
#include "core/ops/ops.h"

namespace howmany::layers {

class Norm : public Layer {
 public:
  // Channels are the last extent of x.
  Norm(std::string name, int64_t channels)
      : name_(std::move(name)),
        channels_(channels),
        params_{{.name = "weight", .shape = {channels}, .init = {Init::constant, 1}},
                {.name = "bias", .shape = {channels}}} {
    HM_REQUIRE(channels > 0, "[{}] {} channels", name_, channels);
  }

  Tensor forward(const Tensor& x, Tape& tape) final {
    output_shape(x.shape());
    const ops::Normalized out = normalize(x, tape);
    if (!tape.training()) return out.y;
    tape.used(scale());
    tape.used(shift());
    tape.push(x);
    if (keeps_output()) tape.push(out.y);
    tape.push(out.mean);
    tape.push(out.inv_std);
    return out.y;
  }

  Tensor backward(const Tensor& dy, Tape& tape) final {
    ops::Normalized kept;
    kept.inv_std = tape.pop();
    kept.mean = tape.pop();
    if (keeps_output()) kept.y = tape.pop();
    const Tensor x = tape.pop();
    Tensor dx = gradient(x, kept, dy, tape);
    tape.done(scale());
    tape.done(shift());
    return dx;
  }

  Shape output_shape(const Shape& x) const final {
    HM_REQUIRE(x.rank() >= 2 && x[-1] == channels_, "[{}] x has shape {}, expected [N,..,{}]",
               name_, x.str(), channels_);
    return x;
  }
  double forward_flop(const Shape& x) const final { return 8 * static_cast<double>(x.numel()); }
  std::span<Param> own_params() final { return params_; }

 protected:
  // Returns y and what gradient() needs. Without training only y.
  virtual ops::Normalized normalize(const Tensor& x, Tape& tape) = 0;
  // Returns dx. Writes grad_out(scale()) and grad_out(shift()).
  virtual Tensor gradient(const Tensor& x, const ops::Normalized& kept, const Tensor& dy,
                          Tape& tape) = 0;
  virtual bool keeps_output() const { return false; }

  int64_t channels() const { return channels_; }
  Param& scale() { return params_[0]; }
  Param& shift() { return params_[1]; }

 private:
  const std::string name_;
  const int64_t channels_;

 protected:
  std::vector<Param> params_;
};

}  // namespace howmany::layers
