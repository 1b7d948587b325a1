// SPDX-License-Identifier: Apache-2.0
// Collects a rank's training steps. Warm-up steps are removed later. Use from one thread.
#pragma once

#include <vector>

#include "core/base/statistics.h"
#include "parallel/modes/mode.h"

namespace howmany::benches {

class StepTally {
 public:
  // `whole` and `for_batch`: seconds of the step and of its wait for the batch.
  void add(double whole, double for_batch, const StepReport& report) {
    steps_.push_back({whole, for_batch, report});
  }
  void forget_first(int steps) { steps_.erase(steps_.begin(), steps_.begin() + steps); }

  size_t size() const { return steps_.size(); }
  // Seconds of each step without the waits for other ranks.
  std::vector<double> own() const {
    return each([](const Step& s) { return s.whole - s.report.waited_seconds; });
  }
  // Share of the total time spent waiting for batches.
  double wait_fraction() const {
    double whole = 0, for_batch = 0;
    for (const Step& step : steps_) {
      whole += step.whole;
      for_batch += step.for_batch;
    }
    return for_batch / whole;
  }
  // The median over the steps, since a step's own time is a median too.
  double typical(double StepReport::*what) const {
    return quantile(each([what](const Step& s) { return s.report.*what; }), 0.5);
  }
  const StepReport& last() const { return steps_.back().report; }

 private:
  struct Step {
    double whole, for_batch;
    StepReport report;
  };

  template <typename Of>
  std::vector<double> each(const Of& of) const {
    std::vector<double> values;
    for (const Step& step : steps_) values.push_back(of(step));
    return values;
  }

  std::vector<Step> steps_;
};

}  // namespace howmany::benches
