// SPDX-License-Identifier: Apache-2.0
// The function data_parallel, composed of the four primitives. Prints how far its output is from
// the plain module's. parallel/sync/primitives.h has the same function.
//
//   PyTorch:  def data_parallel(module, input, device_ids, output_device=None)
//
// Usage: data_parallel_function [devices]     (default: cpu:0-1; "" means no devices)
#include <cmath>
#include <cstdio>
#include <string>

#include "core/nn/layers.h"
#include "core/tensor/rng.h"
#include "parallel/sync/primitives.h"

using namespace howmany;

// Without devices, runs the plain module.
Tensor composed(Layer& module, const Tensor& input, const std::vector<Device>& devices,
                Device output_device) {
  if (devices.empty()) {
    Tape tape({.training = false});
    return module.forward(input, tape);
  }
  const std::vector<LayerPtr> replicas = replicate(module, devices);
  const std::vector<Tensor> inputs = scatter(input, devices);
  const std::vector<Tensor> outputs = parallel_apply(module, replicas, inputs);
  return gather(outputs, output_device);
}

double largest_difference(const Tensor& a, const Tensor& b) {
  double largest = 0;
  for (int64_t i = 0; i < a.numel(); ++i)
    largest = std::fmax(largest, std::abs(a.data<float>()[i] - b.data<float>()[i]));
  return largest;
}

int main(int argc, char** argv) {
  const std::string list = argc > 1 ? argv[1] : "cpu:0-1";
  const auto devices = list.empty() ? std::vector<Device>() : parse_devices(list);
  const Device cpu;

  const LayerPtr module = layers::linear(10, 20);
  materialize(*module, {.device = devices.empty() ? cpu : devices[0]});
  const Tensor input = randn({7, 10}, Rng(1));

  const Tensor output = composed(*module, input, devices, cpu);
  const Tensor plain = data_parallel(*module, input, {}, cpu);  // the library's, without devices
  std::printf("%zu devices, output %s, difference %g\n", devices.size(),
              output.shape().str().c_str(), largest_difference(output, plain));
}
