// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "core/backends/backend.h"
#include "core/backends/selection.h"
#include "core/base/error.h"
#include "core/data/loader.h"
#include "core/profile/range.h"
#include "parallel/comm/engine.h"
#include "parallel/sync/batch.h"
#include "parallel/sync/primitives.h"

namespace howmany {
namespace {

// The tapes of the parts, which forward keeps for backward. The outer tape keeps only tensors, so
// they are the attachment of an empty tensor.
using Tapes = std::vector<Tape>;

Tensor wrap(std::shared_ptr<Tapes> tapes) {
  Tensor carrier = Tensor::empty({0});
  carrier.set_attachment(std::move(tapes));
  return carrier;
}

std::shared_ptr<Tapes> unwrap(const Tensor& carrier) {
  return std::static_pointer_cast<Tapes>(carrier.attachment());
}

class DataParallel : public Layer {
 public:
  DataParallel(LayerPtr module, std::vector<Device> devices, bool sync_batchnorm)
      : module_(std::move(module)),
        devices_(std::move(devices)),
        sync_batchnorm_(sync_batchnorm),
        apply_(devices_) {}

  Tensor forward(const Tensor& x, Tape& tape) override {
    const std::vector<Tensor> parts = parts_of(x);
    const int count = static_cast<int>(parts.size());
    update_replicas(count);
    join_parts(count);
    auto tapes = std::make_shared<Tapes>(part_tapes(x, parts, tape));
    std::vector<Tensor> outputs(parts.size());
    run_parts(count, [&](int i) {
      const auto at = static_cast<size_t>(i);
      outputs[at] = as_at_home(part(i).forward(parts[at], (*tapes)[at]));
    });
    if (tape.training()) {
      for (Param* p : trainable_params(*module_)) tape.used(*p);
      tape.push(wrap(std::move(tapes)));
    }
    return gather(outputs, devices_[0]);
  }

  Tensor backward(const Tensor& dy, Tape& tape) override {
    const std::shared_ptr<Tapes> tapes = unwrap(tape.pop());
    const std::vector<Tensor> parts = dy ? parts_of(dy) : std::vector<Tensor>(tapes->size());
    HM_REQUIRE(parts.size() == tapes->size(), "[data_parallel] forward had {} parts, backward {}",
               tapes->size(), parts.size());
    std::vector<Tensor> dx(parts.size());
    run_parts(static_cast<int>(parts.size()), [&](int i) {
      const auto at = static_cast<size_t>(i);
      if (i > 0) zero_grads(trainable_params(part(i)));
      dx[at] = as_at_home(part(i).backward(parts[at], (*tapes)[at]));
    });
    sum_gradients(static_cast<int>(parts.size()));
    const std::vector<Param*> params = trainable_params(*module_);
    std::for_each(params.rbegin(), params.rend(), [&](Param* p) {
      if (p->has_grad) tape.done(*p);
    });
    return dx[0] ? gather(dx, devices_[0]) : Tensor();
  }

  Shape output_shape(const Shape& x) const override { return module_->output_shape(x); }
  double forward_flop(const Shape& x) const override { return module_->forward_flop(x); }
  std::string describe() const override {
    return fmt::format("data_parallel({}, {} devices)", module_->describe(), devices_.size());
  }
  LayerPtr clone() const override {
    return data_parallel(module_->clone(), devices_, sync_batchnorm_);
  }
  std::vector<Child> children() override { return {{"", module_.get()}}; }

 private:
  // Converts each part to the dtype in which its device stores it.
  std::vector<Tensor> parts_of(const Tensor& whole) const {
    std::vector<Tensor> parts = scatter(whole, devices_);
    for (Tensor& part : parts) part = stored_for(part.device(), part);
    return parts;
  }
  Tensor as_at_home(const Tensor& t) const { return t ? stored_for(devices_[0], t) : t; }

  Layer& part(int i) { return i == 0 ? *module_ : *replicas_[static_cast<size_t>(i)]; }

  // Each replica copies on its own cores. All copies end before any forward starts, because forward
  // changes the module's buffers (part 0).
  void update_replicas(int count) {
    if (replicas_.empty() || stale()) {
      replicas_ = replicate(*module_, devices_);
      return;
    }
    const Range range(Category::copy, "replicate");
    apply_(count, [&](int i) {
      refresh(*module_, std::span(replicas_).subspan(static_cast<size_t>(i), 1));
    });
  }

  // Returns true if the module was materialized again in another dtype.
  bool stale() {
    const std::vector<Param*> mine = all_params(*module_), theirs = all_params(*replicas_[1]);
    return !mine.empty() && mine[0]->value.dtype() != theirs[0]->value.dtype();
  }

  // The threads of the parts are ranks of a local group, over which statistics are summed.
  void join_parts(int count) {
    if (!sync_batchnorm_ || static_cast<int>(statistics_.size()) == count) return;
    statistics_.clear();
    for (auto& engine : comms::local_group(count))
      statistics_.push_back(std::make_unique<Comm>(std::move(engine)));
  }

  // If a part throws, wakes the parts that wait for its statistics and makes the group again.
  void run_parts(int count, const std::function<void(int)>& body) {
    try {
      apply_(count, [&](int i) {
        try {
          body(i);
        } catch (const std::exception& e) {
          if (!statistics_.empty()) statistics_[static_cast<size_t>(i)]->abort(e.what());
          throw;
        }
      });
    } catch (...) {
      statistics_.clear();
      throw;
    }
  }

  Tapes part_tapes(const Tensor& x, const std::vector<Tensor>& parts, const Tape& tape) const {
    Tapes tapes;
    TapeOptions options = tape.options();
    for (const Tensor& part : parts) {
      if (!statistics_.empty())
        options.sum_statistics = [comm = statistics_[tapes.size()].get()](Tensor t) {
          comm->all_reduce(std::move(t));
        };
      tapes.emplace_back(options);
      if (!tape.wants_grad(x)) tapes.back().set_input(part);
      options.first_row += part.shape()[0];
    }
    return tapes;
  }

  // CPU devices share memory; tensors of GPUs are copied to devices[0].
  Tensor reachable(const Tensor& t) const {
    const bool shared = t.device().type == DeviceType::cpu && devices_[0].type == DeviceType::cpu;
    return shared ? t : t.to(devices_[0]);
  }

  // Each thread sums its own slice of each gradient over all parts. This needs no lock and uses the
  // bandwidth of all devices.
  void sum_gradients(int count) {
    const std::vector<Param*> sums = trainable_params(*module_);
    uint64_t bytes = 0;
    for (const Param* param : sums) bytes += static_cast<uint64_t>(param->value.bytes());
    const Range range(Category::copy, "sum gradients", bytes);
    std::vector<std::vector<Param*>> others;
    for (int i = 1; i < count; ++i) others.push_back(trainable_params(part(i)));
    apply_(count, [&](int thread) {
      const Share mine{thread, count};
      for (size_t p = 0; p < sums.size(); ++p) {
        if (!sums[p]->has_grad) continue;
        const int64_t n = sums[p]->grad.numel();
        Tensor sum = sums[p]->grad.flat(mine.begin(n), mine.end(n));
        for (const auto& other : others)
          backend_for(sum).axpy(1, reachable(other[p]->grad.flat(mine.begin(n), mine.end(n))), sum);
      }
    });
  }

  LayerPtr module_;
  std::vector<Device> devices_;
  bool sync_batchnorm_;
  std::vector<std::unique_ptr<Comm>> statistics_;  // one per part; empty if not shared
  std::vector<LayerPtr> replicas_;
  ParallelApply apply_;
};

}  // namespace

LayerPtr data_parallel(LayerPtr module, std::vector<Device> devices, bool sync_batchnorm) {
  HM_REQUIRE(module != nullptr, "[data_parallel] no module");
  const std::set different(devices.begin(), devices.end());
  HM_REQUIRE(different.size() == devices.size() || share_gpus(devices),
             "[data_parallel] a device is given twice");
  if (devices.size() < 2) return module;
  return std::make_unique<DataParallel>(std::move(module), std::move(devices), sync_batchnorm);
}

}  // namespace howmany
