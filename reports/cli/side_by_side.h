// SPDX-License-Identifier: Apache-2.0
// Shows the answers of several runs in one table. Text may come from untrusted files. Values only;
// not tied to any thread.
#pragma once

#include <string>
#include <vector>

#include "reports/results/record.h"

namespace howmany::reports {

struct NamedSummary {
  std::string name;  // the folder of the run
  Summary summary;
};

// One answer of one run. A cell is "-" if the summary does not have its value.
struct AnswerRow {
  std::string run, question, about, answer, certain, samples_per_s, speedup, interval, because;
  bool operator==(const AnswerRow&) const = default;
};

std::vector<AnswerRow> answer_rows(const std::vector<NamedSummary>& runs);
std::string side_by_side_text(const std::vector<NamedSummary>& runs, bool color);

}  // namespace howmany::reports
