// What a rank saw of its training steps, of which only the timed ones count. One thread.
#pragma once

#include <vector>

#include "core/base/statistics.h"
#include "parallel/mode.h"

namespace howmany::benches {

class StepTally {
 public:
  // A step of so many seconds, so many of them spent waiting for its batch.
  void add(double whole, double for_batch, const StepReport& report) {
    steps_.push_back({whole, for_batch, report});
  }
  void forget_first(int steps) { steps_.erase(steps_.begin(), steps_.begin() + steps); }

  size_t size() const { return steps_.size(); }
  // Seconds of each, less those in which the rank waited for others.
  std::vector<double> own() const {
    return each([](const Step& s) { return s.whole - s.report.waited_seconds; });
  }
  // Of all their time, what was spent waiting for batches.
  double wait_fraction() const {
    double whole = 0, for_batch = 0;
    for (const Step& step : steps_) {
      whole += step.whole;
      for_batch += step.for_batch;
    }
    return for_batch / whole;
  }
  // The median, as a step's own time is one.
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
