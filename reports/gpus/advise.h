// From measured speedups to one answer: the largest number of devices whose efficiency is, with 95
// % confidence, at least what is asked. Failed and oversubscribed configurations never win; where
// the interval spans the threshold the answer says that it is uncertain and what would settle it.
// Nothing here predicts: every row was measured. Values only; not tied to any thread.
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
  std::string mode, backend;
  double step_seconds = 0, samples_per_s = 0;
  double data_wait_fraction = 0;              // of a step; NaN when the bench did not tell
  double bubble = 0, theoretical_bubble = 0;  // share of a step devices wait for other stages
  double exposed_seconds = 0;                 // gradient exchange that nothing hides; of a step
  double ranks = 0;                           // processes, or threads; NaN when not told
  double straggler = 0, straggler_extra_seconds = 0;  // the slowest rank; own work in a step
  double peak_bytes = 0;      // of tensors on a device; these NaN when not told
  double busy_elsewhere = 0;  // share of the cores that other programs used; the largest of a round
  Metric speedup, efficiency;
  std::optional<int> rounds_to_decide;  // when the interval spans the threshold
  bool valid = false;                   // measured, not failed, not oversubscribed
  bool best = false;                    // of its number of devices
  std::vector<std::string> flags;
  bool has_flag(std::string_view start) const;  // a flag that starts so
};

struct Advice {
  std::string model;
  std::optional<int> recommended;          // nothing: there is no answer, see `because`
  bool certain = true, disturbed = false;  // disturbed: by other programs, see disturbance.h
  std::string mode, backend;               // of the recommended row
  // pays, does_not_pay, not_faster, uncertain_to_pay, uncertain_to_be_faster, one_device_measured
  // or no_baseline
  std::string reason;
  std::string because;  // for people: "Use 2 GPUs with ddp: ..."
  std::vector<std::string>
      notes;                  // the next step up, what is uncertain, what failed; a sentence each
  std::vector<Point> points;  // by devices
};

// One Advice per model, in the order of the measurements.
std::vector<Advice> advise(const std::vector<Measurement>& measurements,
                           const AdviceOptions& options);

// The member `gpus` of the summary's answer.
nlohmann::ordered_json to_json(const std::vector<Advice>& advice, const AdviceOptions& options);
AdviceOptions options_from_answer(const nlohmann::json& answer, const std::string& source);

}  // namespace howmany::reports
