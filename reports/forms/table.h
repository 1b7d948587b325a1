// SPDX-License-Identifier: Apache-2.0
// The table of a form, its cells and the sentences below it. A figure that was not measured is "not
// measured". Values only; not tied to any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/forms/form.h"
#include "reports/forms/rows.h"
#include "reports/results/document.h"

namespace howmany::reports {

// The devices of a run, and its samples to train.
struct FormDevices {
  std::string noun;      // "GPUs"
  bool gpus = false;     // all are
  std::string gpu_name;  // "NVIDIA A100-SXM4-40GB"; empty if unknown
  double samples = 0;
};

// Returns the units of `hours` of a row; nullopt if the unit does not apply to its devices.
std::optional<double> units_of(const Form& form, const FormDevices& devices, const ScalingRow& row,
                               double hours);

// `rows`: those of `study` to show.
DocumentTable form_table(const Form& form, const FormDevices& devices, const ScalingRows& study,
                         const std::vector<ScalingRow>& rows);

// Returns the sentences: the baseline, the definition of the efficiency, the required efficiency,
// the unit.
std::vector<std::string> form_notes(const Form& form, const FormDevices& devices,
                                    const ScalingRows& study);

std::string to_fill_in(const std::string& text);  // "[TO FILL IN: ...]"

}  // namespace howmany::reports
