// SPDX-License-Identifier: Apache-2.0
// The format of github-action-benchmark's tools customSmallerIsBetter and customBiggerIsBetter: an
// array of {name, unit, value, range, extra} with unique names.
#include <fmt/format.h>

#include "core/base/text/json.h"
#include "reports/regression/writer.h"
#include "reports/regression/writers/common.h"

namespace howmany::reports {
namespace {

std::string write(const Comparison& c, Better better) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const Row& row : c.rows) {
    if (!row.candidate || row.kind.better != better) continue;
    const bool time = row.metric == "real_time";
    all.push_back(
        {{"name", title(row)},
         {"unit", time                    ? "ns/iter"
                  : row.kind.unit.empty() ? "count"
                                          : row.kind.unit},
         {"value", number_or_null(*row.candidate * (time ? 1e9 : 1))},
         {"extra", fmt::format("samples: {}\n{}", row.candidate_samples, name_of(row.verdict))}});
  }
  return dump_json(all);
}

}  // namespace

std::string as_smaller_is_better(const Comparison& c) { return write(c, Better::kLess); }
std::string as_bigger_is_better(const Comparison& c) { return write(c, Better::kMore); }

}  // namespace howmany::reports
