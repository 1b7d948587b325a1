// One copy of a model, its parameters and its training step: what the modes that divide only the
// batch have in common. One thread at a time.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/data/loader.h"
#include "core/model.h"
#include "parallel/mode.h"

namespace howmany {

class Replica {
 public:
  // Materializes the model on `device` from the seed.
  Replica(ModelSpec model, Device device, Dtype dtype, uint64_t seed);

  // Forward, loss and backward on these rows; returns their share of the global mean loss.
  // `on_final` is called as each gradient becomes final.
  double step(const Batch& batch, const Tape::Hook& on_final = {});

  std::vector<Param*> params() { return trainable_params(*model_.layer); }
  std::vector<Param*> params_and_buffers() { return all_params(*model_.layer); }
  std::map<std::string, Tensor> values() const;
  void set_seed(uint64_t seed) { seed_ = seed; }  // of dropout, from the next step on
  void set_sum_statistics(SumOverReplicas sum) { sum_statistics_ = std::move(sum); }

 private:
  ModelSpec model_;
  Device device_;
  Dtype dtype_;
  uint64_t seed_;
  SumOverReplicas sum_statistics_;
  int64_t step_ = 0;
  std::vector<Param*> params_;
  Shape flop_shape_;  // forward_flop_ belongs to inputs of this shape
  double forward_flop_ = 0;
};

}  // namespace howmany
