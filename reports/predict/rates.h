// SPDX-License-Identifier: Apache-2.0
// Reads measured rates as people have them: words, a table or a log. Untrusted input. Values only;
// not tied to any thread.
#pragma once

#include <string>
#include <vector>

#include "reports/predict/ladder.h"

namespace howmany::reports {

struct MeasuredRates {
  std::vector<RateAt> rates;  // sorted by devices
  // Seconds per step were given: the rates are batches of one GPU per second.
  bool of_batches = false;
};

// Parses "1=1,234.5, 2=2.4k", "1=0.42s,2=0.45s", "8=run8.log,16=run16.log" (lines of MLPerf's
// logger), or the path of a table of N and rate. Throws InputError that names the part that is bad.
MeasuredRates parse_rates(const std::string& text);

// Reads a table: N and a rate or seconds per step, separated by commas, semicolons, tabs or spaces.
// A heading names them, if there are more columns. If an N has several rows, their median counts.
MeasuredRates rates_in_table(const std::string& text, const std::string& source);

// Samples per second in MLPerf's logger: the median throughput, or samples over time. Throws
// InputError if the text has neither.
double rate_in_mllog(const std::string& text, const std::string& source);

}  // namespace howmany::reports
