// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "core/base/text/json.h"
#include "reports/regression/text.h"
#include "reports/regression/writer.h"

namespace howmany::reports {
namespace {

using Json = nlohmann::ordered_json;

Json interval(const std::optional<Interval>& of) {
  if (!of) return nullptr;
  return {number_or_null(of->low), number_or_null(of->high)};
}

Json row_json(const Row& row) {
  return {{"benchmark", row.benchmark},
          {"metric", row.metric},
          {"unit", row.kind.unit},
          {"better", row.kind.better == Better::kLess ? "less" : "more"},
          {"exact", row.kind.exact},
          {"verdict", name_of(row.verdict)},
          {"base", number_or_null(row.base)},
          {"candidate", number_or_null(row.candidate)},
          {"change", number_or_null(row.change)},
          {"change_interval", interval(row.interval)},
          {"p_slower", number_or_null(row.p_slower)},
          {"p_faster", number_or_null(row.p_faster)},
          {"base_samples", row.base_samples},
          {"candidate_samples", row.candidate_samples},
          {"floor", number_or_null(row.floor)},
          {"finds", number_or_null(row.finds)},
          {"needed", row.needed},
          {"why", row.why}};
}

}  // namespace

std::string as_json(const Comparison& c) {
  constexpr const char* kLevels[] = {"same", "comparable", "not comparable"};
  Json rows = Json::array(), renamed = Json::array(), counts = Json::object();
  for (const Row& row : c.rows) rows.push_back(row_json(row));
  for (const auto& [was, is] : c.renamed) renamed.push_back({{"base", was}, {"candidate", is}});
  for (int v = 0; v <= static_cast<int>(Verdict::kNew); ++v) {
    counts[name_of(static_cast<Verdict>(v))] = c.count(static_cast<Verdict>(v));
  }
  return dump_json({{"schema", "howmany.comparison/1"},
                    {"headline", headline(c)},
                    {"base", c.base},
                    {"candidate", c.candidate},
                    {"paired", c.paired},
                    {"method", method(c)},
                    {"machines", kLevels[static_cast<int>(c.likeness.level)]},
                    {"machines_differ", c.likeness.decisive},
                    {"also_differ", c.likeness.others},
                    {"counts", counts},
                    {"all_together", number_or_null(c.suite_change)},
                    {"all_together_interval", interval(c.suite_interval)},
                    {"renamed", renamed},
                    {"notes", c.notes},
                    {"rows", rows}});
}

}  // namespace howmany::reports
