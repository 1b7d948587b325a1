// SPDX-License-Identifier: Apache-2.0
// The command `howmany history`: finds since when a benchmark is slower. It reads the JSON Lines
// that `--write history=FILE` writes. One thread.
#pragma once

#include <string>
#include <vector>

#include "reports/regression/history.h"

namespace howmany::reports {

struct HistoryArguments {
  std::string source;  // a folder or file of JSON Lines, or git:BRANCH
  std::string min_effect;
  bool json = false, quiet = false;
};
int run_history(const HistoryArguments& arguments);

struct HistoryText {
  std::string source, text;
};
// Returns the series of several files by benchmark and metric, with their points by date. Throws
// InputError that names the file and the line if a line is not an object {"commit", "date",
// "benchmark", "metric", "ratio"}.
std::vector<Series> series_of(const std::vector<HistoryText>& texts);

}  // namespace howmany::reports
