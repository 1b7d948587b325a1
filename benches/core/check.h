// What the cases of core_bench are made of and checked with.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/tensor/device.h"
#include "core/tensor/tensor.h"

namespace howmany::benches {

using Tensors = std::vector<Tensor>;

Tensor normal(const Shape& shape, const char* name, Device device);      // f32, as parameters are
Tensor activation(const Shape& shape, const char* name, Device device);  // as it is stored there
Tensor room(const Tensor& like);
Tensor on_host(const Tensor& t);  // f32

double dot(const Tensor& a, const Tensor& b);
double rms(const Tensor& t);
// `tolerance` is for f32; the thread's precision allows for more. Throws Error.
void expect_close(const std::string& what, double got, double want, double tolerance);

using Inputs = std::function<Tensors(Device)>;
using Outputs = std::function<Tensors(Tensors&)>;
// A CoreCase's make(): checked against what a CPU makes of the same inputs; the reference or, since
// a GPU's cases are too large for it, whatever is fastest there.
std::function<std::function<void()>()> checked(const std::string& name, Device device,
                                               const Inputs& inputs, const Outputs& run);

}  // namespace howmany::benches
