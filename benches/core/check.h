// SPDX-License-Identifier: Apache-2.0
// Helpers to build and check the cases of core_bench.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/tensor/device.h"
#include "core/tensor/tensor.h"

namespace howmany::benches {

using Tensors = std::vector<Tensor>;

Tensor normal(const Shape& shape, const char* name, Device device);      // f32, as parameters are
Tensor activation(const Shape& shape, const char* name, Device device);  // in the activation dtype
Tensor room(const Tensor& like);
Tensor on_host(const Tensor& t);  // f32

double dot(const Tensor& a, const Tensor& b);
double rms(const Tensor& t);
// `tolerance` applies to f32; it is scaled for the thread's precision. Throws Error if the values
// differ by more.
void expect_close(const std::string& what, double got, double want, double tolerance);

using Inputs = std::function<Tensors(Device)>;
using Outputs = std::function<Tensors(Tensors&)>;
// Returns a CoreCase's make(), which compares the result with that of a CPU for the same inputs.
// CPU cases use the reference kernels. GPU cases are too large for them and use the fastest CPU
// kernels.
std::function<std::function<void()>()> checked(const std::string& name, Device device,
                                               const Inputs& inputs, const Outputs& run);

}  // namespace howmany::benches
