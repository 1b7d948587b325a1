// SPDX-License-Identifier: Apache-2.0
// Writes JSON Lines for `howmany history`: the ratio of the candidate to the base, which is a
// pinned anchor.
#include <cmath>

#include "core/base/text/json.h"
#include "reports/regression/text.h"
#include "reports/regression/writer.h"

namespace howmany::reports {

std::string as_history(const Comparison& c) {
  std::string lines;
  for (const Row& row : c.rows) {
    if (!row.change || *row.change <= -1 || !std::isfinite(*row.change)) continue;
    nlohmann::ordered_json line = {{"commit", c.commit},
                                   {"date", c.date},
                                   {"benchmark", row.benchmark},
                                   {"metric", row.metric},
                                   {"ratio", 1 + *row.change}};
    if (row.interval) {
      line["low"] = 1 + row.interval->low;
      line["high"] = 1 + row.interval->high;
    }
    lines += dump_json_line(line);
  }
  return lines;
}

}  // namespace howmany::reports
