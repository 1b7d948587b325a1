// SPDX-License-Identifier: Apache-2.0
#include "reports/results/summary_files.h"

#include <fmt/format.h>

#include <filesystem>

#include "core/base/text/files.h"
#include "core/base/text/json.h"
#include "reports/comm/advise.h"
#include "reports/comm/json.h"
#include "reports/comm/run.h"
#include "reports/html/html.h"
#include "reports/results/disturbance.h"
#include "reports/transfer/advise.h"

namespace howmany::reports {
namespace {

// Recomputes the answers of backend and transfer from the measurements, as the terminal output
// does.
void advise_suites(Summary& summary) {
  const std::vector<Measurement>& all = summary.measurements;
  if (summary.answer.contains("backend")) {
    BackendAdvice advice = advise_backend(all, gpu_of(summary.context));
    mark_disturbed(busy_elsewhere_in(summary.context), advice);
    summary.answer["backend"] = to_json(advice, all);
  } else if (summary.answer.contains("transfer")) {
    TransferAdvice advice = advise_transfer(all, gpu_of(summary.context));
    mark_disturbed(busy_elsewhere_in(summary.context), advice);
    summary.answer["transfer"] = to_json(advice, all);
  }
}

}  // namespace

void write_summary(const std::string& folder, const Summary& summary) {
  const std::string json = dump_json(to_json(summary)), csv = to_csv(summary),
                    html = to_html(summary);
  write_text(folder + "/summary.json", json);
  write_text(folder + "/summary.csv", csv);
  write_text(folder + "/report.html", html);
}

void write_report_again(const std::string& path, Summary summary) {
  const std::filesystem::path file(path);
  if (file.filename() != "summary.json") return;
  advise_suites(summary);
  try {
    write_text(file.parent_path() / "report.html", to_html(summary));
  } catch (const InputError& error) {
    fmt::print(stderr, "report.html is not written again: {}\n", error.what());
  }
}

}  // namespace howmany::reports
