// The primitives of data parallelism over threads of one process, named as in torch.nn.parallel.
// Each is usable alone. devices[i] is the device of replica i; replica 0 is the module itself. One
// thread makes calls.
//
//   LayerPtr trunk = data_parallel(layers::linear(64, 10), parse_devices("cpu:0-1"));
#pragma once

#include <functional>
#include <memory>
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

}  // namespace howmany
