// SPDX-License-Identifier: Apache-2.0
// Groups the measurements of a summary. report.html has a table and charts for each group: a model
// of `howmany gpus`, an operation of `howmany backend`, a kind of copy, the numbers of workers. A
// group refers to its summary, which must outlive it. Values only; not tied to any thread.
#pragma once

#include <string>
#include <vector>

#include "reports/html/chart.h"
#include "reports/results/record.h"

namespace howmany::reports {

struct HtmlGroup {
  std::string title, suite;
  std::string constants;             // parameters with the same value in all rows
  std::vector<std::string> varying;  // parameters that vary
  std::vector<std::string> metrics;  // the metrics shown
  std::vector<const Measurement*> rows;
  double demand = 0;  // demand on the workers in samples/s; 0: none
};

// Returns the table of a `howmany workers` answer as measurements. Empty for other answers.
std::vector<Measurement> workers_rows(const nlohmann::json& answer);

// Returns at most `most` groups. `left_out` receives the number of measurements in the others.
std::vector<HtmlGroup> groups_of(const Summary& summary, const std::vector<Measurement>& workers,
                                 size_t most, size_t& left_out);

std::vector<Chart> charts_of(const HtmlGroup& group);

// Formats a value with its unit, as on the terminal.
std::string value_text(double value, const std::string& unit);
std::string parameter_text(const std::string& key, const std::string& value);

}  // namespace howmany::reports
