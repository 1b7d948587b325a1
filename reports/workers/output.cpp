// SPDX-License-Identifier: Apache-2.0
#include "reports/workers/output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "core/base/schema/metrics.h"
#include "core/base/text/format.h"
#include "core/base/text/json.h"
#include "core/base/text/table.h"
#include "reports/html/summary_files.h"
#include "reports/results/machine.h"
#include "reports/results/rounds.h"
#include "reports/script/script.h"
#include "reports/workers/render.h"
#include "reports/workers/rows.h"

namespace howmany::reports {

Summary loader_summary(const LoaderResults& results, const nlohmann::ordered_json& request,
                       double busy_elsewhere, const nlohmann::ordered_json& answer) {
  Summary summary;
  summary.context = results.context;
  summary.context["howmany_version"] = HM_VERSION;
  summary.context["howmany_date"] = utc_now("%Y-%m-%dT%H:%M:%SZ");
  summary.context["howmany_request"] = request;
  summary.context[metric::kBusyElsewhereFraction] = busy_elsewhere;
  std::vector<std::vector<Measurement>> runs;
  for (const BenchRow& row : results.rows) runs.push_back({measurement_of(row)});
  summary.measurements = over_rounds(runs);
  summary.answer["workers"] = answer;
  return summary;
}

std::string workers_text(const Summary& summary, const std::string& path, const std::string& folder,
                         bool color) {
  const nlohmann::ordered_json& answer = summary.answer.at("workers");
  const bool own_command = answer.contains("as") && answer["as"] == "script";
  std::string note = own_command ? environment_note(summary) : "";
  if (!note.empty()) note = wrapped(note, kTextWidth, 2) + "\n";
  return fmt::format("{}{}Files: {}\n", render_workers(answer, path, color), note, folder);
}

void write_and_print(const WorkersArguments& arguments, const std::string& folder,
                     const Summary& summary) {
  write_summary(folder, summary);
  if (arguments.json) {
    fmt::print("{}", dump_json(to_json(summary)));
    return;
  }
  const bool color = !arguments.no_color && color_wanted(STDOUT_FILENO);
  fmt::print("{}", workers_text(summary, folder, folder, color));
}

}  // namespace howmany::reports
