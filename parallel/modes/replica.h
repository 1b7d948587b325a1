// One copy of a model, its parameters and its training step: what the modes that divide only the
// batch have in common. One thread at a time.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/data/loader.h"
#include "core/nn/model.h"
#include "parallel/mode.h"

namespace howmany {

// Rows on the model's device, as the model wants them.
struct StepInput {
  Tensor x, target;
  int64_t global_rows = 0, first_row = 0;
  const uint64_t* seed_at = nullptr;  // see TapeOptions
};
struct StepOutcome {
  Tensor loss{};      // the rows' share of the global mean, f64 [1] on the device
  bool drew = false;  // random numbers
};

class Replica {
 public:
  // Materializes the model on `device` from the seed.
  Replica(ModelSpec model, Device device, Dtype dtype, uint64_t seed);

  // Forward, loss and backward on these rows; returns their share of the global mean loss, f64 [1]
  // on the device. `on_final` is called as each gradient becomes final.
  Tensor step(const Batch& batch, const Tape::Hook& on_final = {});
  // The same in parts, for who repeats a step otherwise. run() neither counts it nor draws by the
  // count when the input says where to look.
  StepOutcome run(const StepInput& in, const Tape::Hook& on_final = {});
  uint64_t count_step() { return step_seed(seed_, step_++); }  // that of the step which is counted
  uint64_t step_flop(const Shape& x);

  const ModelSpec& model() const { return model_; }
  Device device() const { return device_; }
  Dtype dtype() const { return dtype_; }

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
