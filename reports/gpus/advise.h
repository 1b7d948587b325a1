// SPDX-License-Identifier: Apache-2.0
// Chooses the number of devices from measured speedups. Recommends the largest number whose
// efficiency is at least the threshold with 95 % confidence.
//
// Validity. Failed and oversubscribed configurations never win.
// Uncertainty. If the interval spans the threshold, the answer is uncertain and its notes say what
//   would settle it.
// Predictions. None: every row was measured.
// Thread safety. Values only; not tied to any thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reports/results/record.h"

namespace howmany::reports {

struct AdviceOptions {
  double min_efficiency = 0.8;
  double samples_to_train = 1'281'167;  // one pass over ImageNet-1k
};

// One configuration of the curve.
struct Point {
  int devices = 1;
  int nodes = 1;  // that have them
  std::string mode, backend;
  double step_seconds = 0, samples_per_s = 0;
  double data_wait_fraction = 0;              // of a step; NaN if the bench did not report it
  double wrapped_fraction = 0;                // of the parameters, by --try-ddp; NaN likewise
  double between_steps_fraction = 0;          // of the time of a script; NaN likewise
  double bubble = 0, theoretical_bubble = 0;  // share of a step spent in waiting for stages
  double exposed_seconds = 0;                 // exposed gradient communication per step
  double ranks = 0;                           // processes or threads; NaN if not reported
  double straggler = 0, straggler_extra_seconds = 0;  // the slowest rank; its extra time in a step
  double peak_bytes = 0;      // of tensors on a device; from `bubble` on, NaN if not reported
  double busy_elsewhere = 0;  // share of the cores used by other programs: the largest of a round
  Metric speedup, efficiency;
  std::optional<int> rounds_to_decide;  // set if the interval spans the threshold
  bool valid = false;                   // measured, not failed, not oversubscribed
  bool best = false;                    // the best configuration with this number of devices
  std::vector<std::string> flags;
  bool has_flag(std::string_view start) const;  // true if a flag starts with `start`
};

// Returns the efficiency at which `devices` are together as fast as one; 0 for one.
double break_even(int devices);
// Returns the minimum efficiency: several devices must be faster than one, whatever the threshold.
double least_efficiency(int devices, double threshold);
enum class Payoff { kPays, kUnsure, kDoesNotPay };
Payoff payoff_of(const Point& point, double threshold);  // by the 95 % interval of the efficiency

struct Advice {
  std::string model;
  bool script = false;                     // `model` is the user's own script
  std::optional<int> recommended;          // nullopt if there is no answer; see `because`
  bool certain = true, disturbed = false;  // disturbed: by other programs, see disturbance.h
  std::string mode, backend;               // of the recommended row
  // pays, does_not_pay, not_faster, uncertain_to_pay, uncertain_to_be_faster,
  // one_device_measured, uses_one_device or no_baseline
  std::string reason;
  std::string because;             // for people: "Use 2 GPUs with ddp: ..."
  std::vector<std::string> notes;  // one sentence each: the next step up, uncertainties, failures
  std::vector<Point> points;       // by devices
};

// Returns one Advice per model, in the order of the measurements. Throws InputError if a parameter
// is missing or invalid.
std::vector<Advice> advise(const std::vector<Measurement>& measurements,
                           const AdviceOptions& options);

// Returns the member `gpus` of the summary's answer.
nlohmann::ordered_json to_json(const std::vector<Advice>& advice, const AdviceOptions& options);
AdviceOptions options_from_answer(const nlohmann::json& answer, const std::string& source);

}  // namespace howmany::reports
