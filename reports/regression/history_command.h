// The command `howmany history`: finds since when a benchmark is slower. One thread.
#pragma once

#include <string>
#include <vector>

#include "reports/regression/history.h"

namespace howmany::reports {

// Converts lines {"commit", "date", "benchmark", "metric", "ratio"}, written by `--write
// history=FILE`, to series sorted by date. Throws InputError that names the line.
std::vector<Series> history_from_text(const std::string& text, const std::string& source);

struct HistoryArguments {
  std::string source;  // a folder or file of JSON Lines, or git:BRANCH
  std::string min_effect;
  bool json = false;
};
int run_history(const HistoryArguments& arguments);

}  // namespace howmany::reports
