// SPDX-License-Identifier: Apache-2.0
#include "parallel/sync/primitives.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "core/backends/backend.h"
#include "core/backends/selection.h"
#include "core/base/error.h"
#include "core/data/loader.h"
#include "core/profile/range.h"
#include "core/profile/recorder.h"
#include "core/tensor/precision.h"
#include "parallel/comm/first_failure.h"
#include "parallel/comm/hang_timeout.h"
#include "parallel/sync/batch.h"

namespace howmany {
namespace {

Device home_of(Layer& module, Device otherwise) {
  const std::vector<Param*> params = all_params(module);
  return params.empty() ? otherwise : params.front()->value.device();
}

Dtype dtype_of_params(Layer& module) {
  const std::vector<Param*> params = all_params(module);
  return params.empty() ? Dtype::f32 : params.front()->value.dtype();
}

}  // namespace

std::vector<LayerPtr> replicate(Layer& module, std::span<const Device> devices) {
  HM_REQUIRE(!devices.empty(), "[replicate] no device given");
  for (const Param* p : all_params(module))
    HM_REQUIRE(p->value, "[replicate] parameter '{}' has no value yet: materialize first", p->name);
  HM_REQUIRE(home_of(module, devices[0]) == devices[0],
             "[replicate] the module is on {}, the first device is {}",
             home_of(module, devices[0]).str(), devices[0].str());
  std::vector<LayerPtr> replicas(devices.size());
  for (size_t i = 1; i < devices.size(); ++i) {
    replicas[i] = module.clone();
    materialize(*replicas[i], {.device = devices[i], .dtype = dtype_of_params(module)});
  }
  refresh(module, replicas);
  return replicas;
}

void refresh(Layer& module, std::span<const LayerPtr> replicas) {
  const std::vector<Param*> from = all_params(module);
  for (const LayerPtr& replica : replicas) {
    if (!replica) continue;
    const std::vector<Param*> to = all_params(*replica);
    HM_REQUIRE(to.size() == from.size(), "[refresh] a replica has {} parameters, the module {}",
               to.size(), from.size());
    for (size_t i = 0; i < from.size(); ++i) to[i]->value.copy_from(from[i]->value);
  }
}

std::vector<Tensor> scatter(const Tensor& x, std::span<const Device> devices) {
  HM_REQUIRE(!devices.empty(), "[scatter] no device given");
  HM_REQUIRE(x && x.shape().rank() > 0, "[scatter] a tensor without rows: {}", x.shape().str());
  const int64_t rows = x.shape()[0];
  const int count =
      static_cast<int>(std::clamp<int64_t>(rows, 1, static_cast<int64_t>(devices.size())));
  std::vector<Tensor> parts;
  for (int i = 0; i < count; ++i) {
    const Share share{i, count};
    parts.push_back(x.rows(share.begin(rows), share.end(rows)).to(devices[static_cast<size_t>(i)]));
  }
  return parts;
}

Tensor gather(std::span<const Tensor> parts, Device home) {
  HM_REQUIRE(!parts.empty(), "[gather] no parts");
  if (parts.size() == 1) return parts[0].to(home);
  int64_t rows = 0;
  for (const Tensor& part : parts) {
    HM_REQUIRE(
        part.shape().rank() > 0 && part.shape().with_rows(0) == parts[0].shape().with_rows(0),
        "[gather] rows differ: {} and {}", part.shape().str(), parts[0].shape().str());
    rows += part.shape()[0];
  }
  Tensor whole = Tensor::empty(parts[0].shape().with_rows(rows), parts[0].dtype(), home);
  int64_t row = 0;
  for (const Tensor& part : parts) {
    whole.rows(row, row + part.shape()[0]).copy_from(part);
    row += part.shape()[0];
  }
  return whole;
}

struct ParallelApply::State {
  std::vector<Device> devices;
  std::mutex mutex;
  std::condition_variable wake, ended;
  const std::function<void(int)>* body = nullptr;
  const Backend* kernels = nullptr;
  Precision precision = Precision::f32;
  int count = 0;    // threads that take part in this round
  int running = 0;  // those that have not ended
  int64_t round = 0;
  bool stop = false;
  FirstFailure failure;
  std::vector<bool> at_work;
  std::vector<std::thread> threads;

  void serve(int index);
  void run_one(int index);
  void wait_for_all(std::unique_lock<std::mutex>& lock);
};

void ParallelApply::State::run_one(int index) {
  try {
    const BackendScope as_caller(*kernels);
    const PrecisionScope read_as_caller(precision);
    (*body)(index);
  } catch (...) {
    failure.keep(std::current_exception());
  }
  const std::lock_guard lock(mutex);
  at_work[static_cast<size_t>(index)] = false;
  --running;
  if (running == 0 || running == count - 1) ended.notify_one();
}

// The first thread may take any time. The others must end within hang_timeout() after it.
void ParallelApply::State::wait_for_all(std::unique_lock<std::mutex>& lock) {
  ended.wait(lock, [this] { return running < count; });
  if (ended.wait_for(lock, hang_timeout(), [this] { return running == 0; })) return;
  const auto hung = std::ranges::find(at_work, true) - at_work.begin();
  const std::exception_ptr other = failure.get();
  end_hung_process(devices[static_cast<size_t>(hung)].str(),
                   other ? "another device failed: " + text_of(other) : "another device");
}

void ParallelApply::State::serve(int index) {
  const DeviceScope on(devices[static_cast<size_t>(index)]);
  for (int64_t seen = 0;;) {
    {
      std::unique_lock lock(mutex);
      wake.wait(lock, [&] { return stop || round != seen; });
      if (stop) return;
      seen = round;
      if (index >= count) continue;
    }
    run_one(index);
  }
}

ParallelApply::ParallelApply(std::vector<Device> devices) : state_(std::make_unique<State>()) {
  HM_REQUIRE(!devices.empty(), "[parallel_apply] no device given");
  state_->devices = std::move(devices);
  for (int i = 0; i < static_cast<int>(state_->devices.size()); ++i)
    state_->threads.emplace_back([state = state_.get(), i, track = current_track()] {
      const TrackScope same(track, "device");
      state->serve(i);
    });
}

ParallelApply::~ParallelApply() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stop = true;
  }
  state_->wake.notify_all();
  for (std::thread& thread : state_->threads) thread.join();
}

void ParallelApply::operator()(int count, const std::function<void(int)>& body) {
  HM_REQUIRE(count >= 0 && count <= static_cast<int>(state_->devices.size()),
             "[parallel_apply] {} calls on {} devices", count, state_->devices.size());
  if (count == 0) return;
  std::unique_lock lock(state_->mutex);
  state_->body = &body;
  state_->kernels = &backend_for(Tensor::empty({1}, Dtype::f32, state_->devices[0]));
  state_->precision = current_precision();
  state_->count = state_->running = count;
  state_->failure.forget();
  state_->at_work.assign(static_cast<size_t>(count), true);
  ++state_->round;
  state_->wake.notify_all();
  state_->wait_for_all(lock);
  state_->failure.rethrow();
}

std::vector<Tensor> parallel_apply(Layer& module, std::span<const LayerPtr> replicas,
                                   std::span<const Tensor> inputs) {
  HM_REQUIRE(inputs.size() <= replicas.size(), "[parallel_apply] {} inputs for {} replicas",
             inputs.size(), replicas.size());
  if (inputs.empty()) return {};
  std::vector<Device> devices;
  for (const Tensor& input : inputs) devices.push_back(input.device());
  std::vector<Tensor> outputs(inputs.size());
  ParallelApply apply(devices);
  apply(static_cast<int>(inputs.size()), [&](int i) {
    const auto at = static_cast<size_t>(i);
    Tape tape({.training = false});
    Layer& replica = replicas[at] ? *replicas[at] : module;
    outputs[at] = replica.forward(stored_for(devices[at], inputs[at]), tape);
  });
  return outputs;
}

Tensor data_parallel(Layer& module, const Tensor& input, std::span<const Device> devices,
                     std::optional<Device> output_device) {
  if (devices.empty()) {
    Tape tape({.training = false});
    const Tensor output = module.forward(input, tape);
    return output_device ? output.to(*output_device) : output;
  }
  const Device home = output_device.value_or(devices[0]);
  const std::vector<LayerPtr> replicas = replicate(module, devices);
  const std::vector<Tensor> inputs = scatter(input, devices);
  std::vector<Tensor> outputs = parallel_apply(module, replicas, inputs);
  for (Tensor& output : outputs) output = stored_for(home, output);
  return gather(outputs, home);
}

}  // namespace howmany
