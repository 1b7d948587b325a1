// SPDX-License-Identifier: Apache-2.0
// The experiments of a project, from a TOML file (--experiments), and their cost in the unit of
// a form. The file is untrusted. Values only; not tied to any thread.
//
//   [[experiment]]
//   name = "pretraining"
//   nodes = 4            # or devices = 16: a number that was measured or predicted
//   samples = 90e6       # that a run trains; or hours = 12.5 of a run
//   runs = 3
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reports/forms/rows.h"
#include "reports/results/document.h"

namespace howmany::reports {

struct Experiment {
  std::string name;
  ScalingRow row;    // the measured or predicted one of its count
  double hours = 0;  // of a run
  int runs = 1;
};

// Throws InputError with file, line and key: for unknown keys, numbers out of range, and counts
// without a row.
std::vector<Experiment> read_experiments(std::string_view text, const std::string& source,
                                         const ScalingRows& rows);

// Returns experiment, units of a run, runs and total, with a line of the sum. `units` returns the
// units of some hours of a row; nullopt if the unit does not apply.
DocumentTable experiments_table(
    const std::vector<Experiment>& experiments, const std::string& unit,
    const std::function<std::optional<double>(const ScalingRow&, double hours)>& units);

}  // namespace howmany::reports
