// SPDX-License-Identifier: Apache-2.0
// Bencher Metric Format: benchmark -> measure -> {value}. "latency" is Bencher's own measure, in
// nanoseconds.
#include "core/base/text/json.h"
#include "reports/regression/writer.h"
#include "reports/regression/writers/common.h"

namespace howmany::reports {

std::string as_bencher(const Comparison& c) {
  nlohmann::ordered_json all = nlohmann::ordered_json::object();
  for (const Row& row : c.rows) {
    if (!row.candidate) continue;
    const bool time = row.metric == "real_time";
    const double value = *row.candidate * (time ? 1e9 : 1);
    all[row.benchmark][time ? "latency" : row.metric] = {{"value", number_or_null(value)}};
  }
  return dump_json(all);
}

}  // namespace howmany::reports
