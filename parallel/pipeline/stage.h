// SPDX-License-Identifier: Apache-2.0
// One pipeline stage: a contiguous part of a model on one device, and its part of a training step.
//
// Step. Runs the micro-batches in the order of a schedule. Activations come from the previous stage
//   and go to the next; gradients take the opposite direction.
// Ends. The first stage reads the batch. The last stage computes the loss.
// Messages. Every stage knows all shapes, so messages hold only values. StageLinks send them
//   between ranks or threads.
// Thread safety. One thread at a time.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/loader.h"
#include "core/nn/model.h"
#include "parallel/pipeline/link.h"
#include "parallel/pipeline/schedule.h"
#include "parallel/sync/step_clock.h"

namespace howmany {

struct StageOptions {
  int index = 0, count = 1;
  std::vector<size_t> bounds = {};  // stage i has the units [bounds[i], bounds[i + 1])
  Device device = {};
  Dtype dtype = Dtype::f32;
  uint64_t seed = 1;
  std::string schedule = "1f1b";
  SumOverReplicas sum_statistics = {};       // see TapeOptions
  std::optional<DividedLogits> logits = {};  // of the last stage, if they are divided
  bool recompute = false;    // keeps only the stage's input; runs forward again before backward
  bool sends_whole = false;  // no stage stores activations in a shorter dtype, so none sends it
};

// Throws std::invalid_argument if the model has fewer units than that.
void check_stages(std::string_view mode, const ModelSpec& model, int stages);

class Stage {
 public:
  // Materializes this stage's part. Does not change `model`. The model may be divided (cut.h):
  // then its parts have no initial values yet.
  Stage(const ModelSpec& model, const StageOptions& options, StageLinks links);

  // Runs forward and backward of all micro-batches. Returns their share of the global mean loss on
  // the last stage, 0 on other stages. Calls `on_final` when a gradient is final.
  double step(const Batch& mine, int micro_batches, const Tape::Hook& on_final);

  std::vector<Param*> params() { return trainable_params(*layer_); }
  std::vector<Param*> params_and_buffers() { return all_params(*layer_); }
  StepClock& clock() { return clock_; }  // the caller begins and ends steps
  void close(std::string_view why) const { links_.close(why); }

 private:
  class Run;  // one step

  bool first() const { return options_.index == 0; }
  bool last() const { return options_.index + 1 == options_.count; }

  StageOptions options_;
  StageLinks links_;
  Shape sample_;
  Loss loss_;
  LayerPtr before_, layer_;  // the earlier units (only for shapes); the units of this stage
  std::vector<Param*> params_;
  int64_t step_ = 0;
  StepClock clock_;
};

}  // namespace howmany
