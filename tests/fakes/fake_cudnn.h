// SPDX-License-Identifier: Apache-2.0
// The contents of the fake cuDNN's descriptors, and its interface to tests (by dlsym, since it is
// opened at run time). See fake_cudnn.cpp.
#pragma once

#include <cudnn.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace howmany::testing_support::fake_cudnn {

// rounding: uses tensor cores, which round f32 inputs to 11 bits. chancy: nondeterministic. unfit:
// has no plan. failing: its plan fails at run time. The compiled ones are for bf16.
enum class Engine { rounding, chancy, unfit, compiled, compiled_too, slow, failing, fast, count };

struct Object {
  cudnnBackendDescriptorType_t type{};
  bool finished = false;
  std::map<cudnnBackendAttributeName_t, std::vector<char>> values{};
  Engine engine{};                // of an engine or a configuration of one
  const Object* graph = nullptr;  // for a configuration

  template <typename T>
  std::vector<T> all(cudnnBackendAttributeName_t name) const {
    const auto found = values.find(name);
    if (found == values.end()) return {};
    std::vector<T> out(found->second.size() / sizeof(T));
    std::memcpy(static_cast<void*>(out.data()), found->second.data(), found->second.size());
    return out;
  }
  template <typename T>
  T one(cudnnBackendAttributeName_t name, T otherwise = {}) const {
    const auto found = values.find(name);
    if (found == values.end()) return otherwise;
    T out{};
    std::memcpy(static_cast<void*>(&out), found->second.data(), sizeof out);
    return out;
  }
  const Object& object(cudnnBackendAttributeName_t name) const { return *one<const Object*>(name); }
};

struct Tensor {
  explicit Tensor(const Object& o)
      : id(o.one<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID)),
        alignment(o.one<int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT)),
        extents(o.all<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS)),
        strides(o.all<int64_t>(CUDNN_ATTR_TENSOR_STRIDES)),
        type(o.one<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE)),
        inside(o.one<bool>(CUDNN_ATTR_TENSOR_IS_VIRTUAL)),
        by_value(o.one<bool>(CUDNN_ATTR_TENSOR_IS_BY_VALUE)) {}
  int64_t element() const { return type == CUDNN_DATA_BFLOAT16 ? 2 : 4; }
  int64_t span() const {  // from the first to behind the last element
    int64_t last = 0;
    for (size_t d = 0; d < extents.size(); ++d) last += (extents[d] - 1) * strides[d];
    return last + 1;
  }

  int64_t id, alignment;
  std::vector<int64_t> extents, strides;
  cudnnDataType_t type;
  bool inside, by_value;
};

struct OperationOf {
  const Object* made;
  std::vector<Tensor> inputs;
  Tensor result;
};
OperationOf operation_of(const Object& o);

struct ConvolutionOf {
  explicit ConvolutionOf(const Object& o);
  Tensor x, w, y;
  std::vector<int64_t> padding, stride, dilation;
  double alpha, beta;
};
cudnnPointwiseMode_t mode_of_pointwise(const Object& o);
int64_t axis_of_pointwise(const Object& o);  // -1: none
cudnnReduceTensorOp_t mode_of_reduction(const Object& o);
struct GraphOf {
  explicit GraphOf(const Object& o) {
    for (const Object* const op : o.all<const Object*>(CUDNN_ATTR_OPERATIONGRAPH_OPS))
      operations.push_back(operation_of(*op));
  }
  std::vector<OperationOf> operations;
};

}  // namespace howmany::testing_support::fake_cudnn

extern "C" {
int hm_fake_cudnn_runs(int engine);  // number of runs of the engine
}
