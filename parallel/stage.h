// One stage of a model that is cut into stages: its part on one device, and that part's share of a
// training step: micro-batches in the order of a schedule, activations in from the stage before and
// out to the one after, gradients the other way. The first stage reads the batch, the last one
// computes the loss, and every stage knows all shapes, so that messages carry only values. What
// carries them are StageLinks: ranks or threads make no difference. One thread at a time.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/data/loader.h"
#include "core/nn/model.h"
#include "core/nn/units.h"
#include "parallel/link.h"
#include "parallel/schedule.h"
#include "parallel/step_clock.h"

namespace howmany {

struct StageOptions {
  int index = 0, count = 1;
  std::vector<size_t> bounds = {};  // stage i has the units [bounds[i], bounds[i + 1])
  Device device = {};
  Dtype dtype = Dtype::f32;
  uint64_t seed = 1;
  std::string schedule = "1f1b";
  SumOverReplicas sum_statistics = {};  // see TapeOptions
  bool recompute = false;  // keep only the stage's input, and run forward again before backward
};

class Stage {
 public:
  // Materializes its part of `model`, which is left as it is.
  Stage(const ModelSpec& model, const StageOptions& options, StageLinks links);

  // Forward and backward of all micro-batches; returns their share of the global mean loss on the
  // last stage, 0 elsewhere. `on_final` is called as each gradient becomes final.
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
  LayerPtr before_, layer_;  // the units in front (for their shapes alone), and ours
  std::vector<Param*> params_;
  int64_t step_ = 0;
  StepClock clock_;
};

}  // namespace howmany
