// SPDX-License-Identifier: Apache-2.0
// Prints answers: of a run that was just measured, and of earlier runs. Results go to stdout,
// everything else to stderr. Each function returns an exit code, and throws InputError for bad
// usage or input.
#pragma once

#include <string>
#include <vector>

#include "reports/gpus/command.h"

namespace howmany::reports {

struct ReportArguments : AnswerArguments {
  std::vector<std::string> paths;    // folders, or files summary.json
  std::string experiments;           // a file, see reports/forms/experiments.h
  std::vector<std::string> exports;  // KIND:PATH, see reports/export/exporter.h
  std::string python;                // for exports; empty: the active one
};

// Runs `howmany gpus`, or `howmany run` if a preset is given.
int measure_and_print(const Arguments& arguments);
// Runs `howmany report`: prints the answer again and rewrites report.html, or compares several
// runs.
int run_report(const ReportArguments& arguments);

// Recomputes the answer of `howmany backend` or `howmany transfer` from the measurements, and
// returns its text. Returns "" for other summaries.
std::string suite_text(Summary& summary, bool color);

}  // namespace howmany::reports
