// SPDX-License-Identifier: Apache-2.0
// The fake cuDNN's engines: the heuristics for a graph, and naive computation of a graph in double.
// See fake_cudnn.h.
#pragma once

#include <functional>

#include "tests/fakes/fake_cudnn.h"
#include "tests/fakes/fake_gpu.h"

namespace howmany::testing_support::fake_cudnn {

std::vector<Engine> advised(const Object& heuristics);
std::vector<cudnnBackendNumericalNote_t> notes_of(Engine engine);
bool is_compiled(Engine engine);
int64_t workspace_of(Engine engine);  // bytes
double seconds_of(Engine engine);     // large, so that the real time is negligible

using Index = std::vector<int64_t>;

class Run {
 public:
  Run(const Object& graph, const Object& pack, Engine engine);
  std::string misfit() const;  // describes an invalid pointer; empty if there is none
  void compute() const;
  Engine engine() const { return engine_; }

 private:
  using Values = std::map<int64_t, std::vector<double>>;  // of virtual tensors, by id
  double read(const Tensor& t, const Index& at, const Values& inside) const;
  double input(const Tensor& t, const Index& at, const Values& inside) const;  // rounded by engine
  using Reading = double (Run::*)(const Tensor&, const Index&, const Values&) const;
  std::vector<double> all_of(const Tensor& t, const Values& inside, Reading value) const;
  void write(const Tensor& t, const Index& at, double value, Values& inside) const;
  void convolve(const OperationOf& op, Values& inside) const;
  void pointwise(const OperationOf& op, Values& inside) const;
  void multiply(const OperationOf& op, Values& inside) const;
  void reduce(const OperationOf& op, Values& inside) const;
  void reshape(const OperationOf& op, Values& inside) const;

  GraphOf graph_;  // its descriptors live as long as the plan
  Engine engine_;
  std::map<int64_t, void*> data_;
  std::map<int64_t, double> values_;  // read when the engine is enqueued
  void* workspace_;
};

}  // namespace howmany::testing_support::fake_cudnn
