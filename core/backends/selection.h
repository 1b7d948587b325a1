// SPDX-License-Identifier: Apache-2.0
// The backend that computes an operation: by name, or by the device of a tensor.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/backends/backend.h"

namespace howmany {

std::vector<std::string_view> backend_names();
// Throws std::invalid_argument with the list of backends if the name is not built in.
const Backend& backend_named(std::string_view name);
// Returns the backend for operations on `t`: the innermost BackendScope of this thread if it has
// the same device type, else the best one for the device. f64 on CPU devices always uses reference.
const Backend& backend_for(const Tensor& t);

// Returns the dtype in which `device` stores activations and their gradients if it computes with
// `dtype` at the thread's precision.
Dtype stored_dtype(Dtype dtype, Device device);

// Throws std::invalid_argument if the kernels of no device compute in the precision. They are those
// named `kernels`, or the fastest ones if it is empty. Call it before any work.
void check_precision(Precision precision, std::span<const Device> devices,
                     std::string_view kernels = {});

// Sets the calling thread's backend for its device type, until the scope ends.
class BackendScope {
 public:
  explicit BackendScope(const Backend& backend);
  ~BackendScope();
  BackendScope(const BackendScope&) = delete;
  BackendScope& operator=(const BackendScope&) = delete;

 private:
  const Backend* outer_;
};

}  // namespace howmany
