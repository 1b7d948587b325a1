// SPDX-License-Identifier: Apache-2.0
// The primitives of data parallelism over threads of one process, named as in torch.nn.parallel.
// Each is usable alone. devices[i] is the device of replica i; replica 0 is the module itself. One
// thread makes calls.
//
//   LayerPtr trunk = data_parallel(layers::linear(64, 10), parse_devices("cpu:0-1"));
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/nn/layer.h"

namespace howmany {

// Returns copies of `module` that are materialized on devices[1..]. Entry 0 is null: it means the
// module itself, which must be materialized on devices[0].
std::vector<LayerPtr> replicate(Layer& module, std::span<const Device> devices);
// Copies the module's parameters and buffers into its replicas, as is needed before each step.
void refresh(Layer& module, std::span<const LayerPtr> replicas);

// Divides the rows of x as evenly as possible, the first parts larger, and moves part i to
// devices[i]. Returns fewer parts if there are fewer rows than devices. A part that is already on
// its device is a view.
std::vector<Tensor> scatter(const Tensor& x, std::span<const Device> devices);
// Concatenates the rows of the parts on `home`.
Tensor gather(std::span<const Tensor> parts, Device home);

// Runs replica i on inputs[i], each on a thread that is bound to the device of its input. Returns
// the outputs, on the same devices. Entry 0 of `replicas` may be null, as replicate() returns it.
// Computes no gradients.
std::vector<Tensor> parallel_apply(Layer& module, std::span<const LayerPtr> replicas,
                                   std::span<const Tensor> inputs);

// Composes the four: replicate, scatter, parallel_apply, gather. Returns the module's output on
// `output_device`, devices[0] if there is none. Without devices, runs the plain module. Computes no
// gradients: to train, wrap the module instead (below).
Tensor data_parallel(Layer& module, const Tensor& input, std::span<const Device> devices,
                     std::optional<Device> output_device = {});

// Runs body(i) concurrently for each i < count, on a thread that is bound to devices[i]. Rethrows
// the first failure once all have ended. The threads persist between calls and use the caller's
// kernels and precision. If a thread still runs hang_timeout() after the first one ended, the
// process ends (hang_timeout.h).
class ParallelApply {
 public:
  explicit ParallelApply(std::vector<Device> devices);
  ~ParallelApply();
  void operator()(int count, const std::function<void(int)>& body);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Wraps a module or sub-module, as torch.nn.DataParallel does. Returns `module` itself if there are
// fewer than two devices.
// Forward. Scatters the rows, runs the replicas concurrently and gathers the outputs.
// Backward. Does the same and leaves the summed gradients in `module`.
// Buffers. Running statistics are those of part 0, as in torch. If sync_batchnorm is true, the
//   parts share the statistics of batch norm.
// Parameters. Their paths and values are the same as without the wrapper.
LayerPtr data_parallel(LayerPtr module, std::vector<Device> devices, bool sync_batchnorm = false);

// Places a part of a model on its own device, as module.to(device) and x.to(device) do in torch.
// materialize() allocates the part's parameters there. forward() moves its input there and leaves
// its output there; backward() returns the gradient on the device of the input. Both bind the
// thread to the device. The rest of the model must not be replicated.
//
//   layers::sequential(layers::embedding(1000, 10), on_device(layers::linear(10, 10), gpu));
LayerPtr on_device(LayerPtr module, Device device);

}  // namespace howmany
