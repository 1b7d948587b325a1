// What data parallelism over the threads of one process is made of, each usable alone and named as
// in torch.nn.parallel. Devices are given per replica; index 0 is the home. One thread calls.
//
//   LayerPtr trunk = data_parallel(layers::linear(64, 10), parse_devices("cpu:0-1"));
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/nn/layer.h"

namespace howmany {

// Copies of `module`, materialized on devices[1..]; entry 0 is null and stands for the module
// itself. The module must be materialized on devices[0].
std::vector<LayerPtr> replicate(Layer& module, std::span<const Device> devices);
// Copies the module's values (and buffers) into its replicas again: the per-step part of replicate.
void refresh(Layer& module, std::span<const LayerPtr> replicas);

// Rows of x divided as evenly as possible (the first parts larger) and moved to each device; fewer
// rows than devices yields fewer parts. Views when already in place.
std::vector<Tensor> scatter(const Tensor& x, std::span<const Device> devices);
// Rows joined again on `home`.
Tensor gather(std::span<const Tensor> parts, Device home);

// body(i) on a thread bound to devices[i] for every i < count, at once; rethrows the first failure
// when all ended. The threads are kept between calls and compute with the caller's kernels and in
// its precision. One
// that has not ended hang_timeout() after the first ends the process (hang_timeout.h).
class ParallelApply {
 public:
  explicit ParallelApply(std::vector<Device> devices);
  ~ParallelApply();
  void operator()(int count, const std::function<void(int)>& body);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Any sub-module wrapped: forward scatters rows, runs the replicas at once and gathers; backward
// the same, and leaves the summed gradients in `module`. Buffers (running statistics) are those of
// the home's part, as in torch. With fewer than two devices returns `module` itself. The rest of a
// model is untouched: paths and values of parameters are the same with and without it. With
// sync_batchnorm the parts share the statistics of batch norm.
LayerPtr data_parallel(LayerPtr module, std::vector<Device> devices, bool sync_batchnorm = false);

}  // namespace howmany
