// SPDX-License-Identifier: Apache-2.0
#include "core/base/text/csv.h"

#include "reports/regression/writer.h"

namespace howmany::reports {

std::string as_csv(const Comparison& c) {
  std::string csv;
  add_csv_row(csv, {"benchmark", "metric", "unit", "better", "verdict", "base", "candidate",
                    "change", "change_low", "change_high", "p_slower", "p_faster", "base_samples",
                    "candidate_samples", "floor", "needed", "why"});
  for (const Row& row : c.rows) {
    const auto& i = row.interval;
    add_csv_row(csv, {csv_text(row.benchmark), csv_text(row.metric), csv_text(row.kind.unit),
                      row.kind.better == Better::kLess ? "less" : "more", name_of(row.verdict),
                      csv_number(row.base), csv_number(row.candidate), csv_number(row.change),
                      i ? csv_number(i->low) : "", i ? csv_number(i->high) : "",
                      csv_number(row.p_slower), csv_number(row.p_faster),
                      std::to_string(row.base_samples), std::to_string(row.candidate_samples),
                      csv_number(row.floor), std::to_string(row.needed), csv_text(row.why)});
  }
  return csv;
}

}  // namespace howmany::reports
