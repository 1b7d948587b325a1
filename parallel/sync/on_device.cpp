// SPDX-License-Identifier: Apache-2.0
#include "core/base/error.h"
#include "parallel/sync/batch.h"
#include "parallel/sync/primitives.h"

namespace howmany {
namespace {

class OnDevice final : public Layer {
 public:
  OnDevice(LayerPtr module, Device device) : module_(std::move(module)), device_(device) {}

  Tensor forward(const Tensor& x, Tape& tape) override {
    const DeviceScope on(device_);
    Tensor here = stored_for(device_, x.to(device_));
    const bool wanted = tape.training() && tape.wants_grad(x);
    Tensor y = module_->forward(here, tape);
    if (tape.training()) tape.push(wanted ? Tensor::empty({0}, x.dtype(), x.device()) : Tensor());
    return y;
  }

  Tensor backward(const Tensor& dy, Tape& tape) override {
    const DeviceScope on(device_);
    const Tensor source = tape.pop();
    const Tensor dx = module_->backward(dy ? stored_for(device_, dy.to(device_)) : dy, tape);
    if (!dx || !source) return {};
    return stored_for(source.device(), dx.to(source.device()));
  }

  Shape output_shape(const Shape& x) const override { return module_->output_shape(x); }
  double forward_flop(const Shape& x) const override { return module_->forward_flop(x); }
  std::string describe() const override {
    return fmt::format("{} on {}", module_->describe(), device_.str());
  }
  LayerPtr clone() const override { return on_device(module_->clone(), device_); }
  std::optional<Device> own_device() const override { return device_; }
  std::vector<Child> children() override { return {{"", module_.get()}}; }

 private:
  LayerPtr module_;
  Device device_;
};

}  // namespace

LayerPtr on_device(LayerPtr module, Device device) {
  HM_REQUIRE(module != nullptr, "[on_device] no module");
  return std::make_unique<OnDevice>(std::move(module), device);
}

}  // namespace howmany
