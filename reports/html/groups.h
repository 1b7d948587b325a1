// The measurements of a summary in the groups of which report.html has a table and charts: a model
// of `howmany gpus`, an operation of `howmany backend`, a kind of copy, the numbers of workers. A
// group refers to the summary it is of. Values only; not tied to any thread.
#pragma once

#include <string>
#include <vector>

#include "reports/html/chart.h"
#include "reports/results/record.h"

namespace howmany::reports {

struct HtmlGroup {
  std::string title, suite;
  std::string constants;             // the parameters that all rows share
  std::vector<std::string> varying;  // the others
  std::vector<std::string> metrics;  // those that are shown
  std::vector<const Measurement*> rows;
  double demand = 0;  // samples/s that workers are to bring; 0: none
};

// The curve of `howmany workers`, which its answer holds, as measurements; empty for another's.
std::vector<Measurement> workers_rows(const nlohmann::json& answer);

// At most `most` groups; `left_out` counts the measurements of further ones.
std::vector<HtmlGroup> groups_of(const Summary& summary, const std::vector<Measurement>& workers,
                                 size_t most, size_t& left_out);

std::vector<Chart> charts_of(const HtmlGroup& group);

// With its unit, as on the terminal.
std::string value_text(double value, const std::string& unit);
std::string parameter_text(const std::string& key, const std::string& value);

}  // namespace howmany::reports
