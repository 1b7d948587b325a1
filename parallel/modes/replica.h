// SPDX-License-Identifier: Apache-2.0
// A copy of a model, its parameters and its training step. The modes that divide only the batch
// share it. One thread at a time.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/data/loader.h"
#include "core/nn/model.h"
#include "parallel/modes/mode.h"

namespace howmany {

// Rows on the model's device, in the model's dtypes.
struct StepInput {
  Tensor x, target;
  int64_t global_rows = 0, first_row = 0;
  const uint64_t* seed_at = nullptr;  // see TapeOptions
};
struct StepOutcome {
  Tensor loss{};      // the share of these rows in the global mean, f64 [1] on the device
  bool drew = false;  // the step drew random numbers
};

// One of the micro-batches of a step. Their gradients are added.
struct MicroBatch {
  int index = 0, count = 1;
  bool last() const { return index + 1 == count; }
};

// Moves the model out of the arguments. It recomputes if their options say so.
ModelSpec model_of(ModeArgs& args);

class Replica {
 public:
  // Materializes the model on `device` from the seed.
  Replica(ModelSpec model, Device device, Dtype dtype, uint64_t seed);
  // Takes a model that is already there. Give the seed of dropout to set_seed().
  struct Materialized {};
  Replica(ModelSpec model, Device device, Dtype dtype, Materialized);

  // Runs forward, loss and backward of each micro-batch. Returns the share of these rows in the
  // global mean loss, f64 [1] on the device. Calls `on_final` when a gradient is final.
  Tensor step(const Batch& batch, const Tape::Hook& on_final = {});
  // The parts of step(), for callers such as StepGraph that replay it. run() does not count the
  // step. It seeds random numbers from in.seed_at if that is set, else from the step count.
  StepOutcome run(const StepInput& in, const Tape::Hook& on_final = {});
  uint64_t count_step() { return step_seed(seed_, step_++); }  // returns the seed of that step
  uint64_t step_flop(const Shape& x) { return flop_of(x).step; }

  const ModelSpec& model() const { return model_; }
  Device device() const { return device_; }
  Dtype dtype() const { return dtype_; }

  std::vector<Param*> params() { return trainable_params(*model_.layer); }
  std::vector<Param*> params_and_buffers() { return all_params(*model_.layer); }
  std::map<std::string, Tensor> values() const;
  // Steps have `most` micro-batches, or as many as the smallest of `shares` shares of the global
  // batch has rows.
  void accumulate(int most, int shares) {
    most_micro_batches_ = most;
    shares_ = shares;
  }
  int micro_batches(int64_t global_rows) const {
    return static_cast<int>(std::clamp<int64_t>(global_rows / shares_, 1, most_micro_batches_));
  }
  MicroBatch micro_batch() const { return micro_batch_; }  // the one that runs
  void set_seed(uint64_t seed) { seed_ = seed; }           // of dropout; applies from the next step
  void set_logits(DividedLogits divided) { logits_ = std::move(divided); }
  void set_sum_statistics(SumOverReplicas sum) { sum_statistics_ = std::move(sum); }

 private:
  struct Flop {
    Shape x;
    uint64_t forward, step;
  };
  Flop flop_of(const Shape& x);
  void add_micro_batch(const StepInput& in, const Tape::Hook& on_final, StepOutcome& sum);

  ModelSpec model_;
  Device device_;
  Dtype dtype_;
  uint64_t seed_;
  SumOverReplicas sum_statistics_;
  std::optional<DividedLogits> logits_;  // of the output, if it is divided
  int64_t step_ = 0;
  int most_micro_batches_ = 1, shares_ = 1;
  MicroBatch micro_batch_;
  std::vector<Param*> params_;
  std::vector<Flop> flops_;  // a run has few shapes
};

// Batch norm with the statistics of all replicas. They have a Comm of their own, so that they do
// not queue behind gradients.
class SharedStatistics {
 public:
  // Collective. `gpu_waits`: the GPU waits for an exchange instead of the host.
  SharedStatistics(Comm& comm, Replica& replica, bool gpu_waits);
  SharedStatistics(const SharedStatistics&) = delete;  // the replica refers to this
  SharedStatistics& operator=(const SharedStatistics&) = delete;
  Work last() const { return last_; }  // the last exchange that only the GPU waited for
  void finish() { comm_->finish(); }

 private:
  std::unique_ptr<Comm> comm_;
  Work last_;
};

}  // namespace howmany
