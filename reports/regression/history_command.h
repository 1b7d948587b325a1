// `howmany history`: since when a benchmark is slower. One thread.
#pragma once

#include <string>
#include <vector>

#include "reports/regression/history.h"

namespace howmany::reports {

// Lines {"commit", "date", "benchmark", "metric", "ratio"}, as `--write history=FILE` makes them,
// become series in the order of their dates. Throws InputError naming the line.
std::vector<Series> history_from_text(const std::string& text, const std::string& source);

struct HistoryArguments {
  std::string source;  // a folder or file of JSON Lines, or git:BRANCH
  std::string min_effect;
  bool json = false;
};
int run_history(const HistoryArguments& arguments);

}  // namespace howmany::reports
