// SPDX-License-Identifier: Apache-2.0
#include "reports/html/summary_files.h"

#include "core/base/text/files.h"
#include "core/base/text/json.h"
#include "reports/html/html.h"

namespace howmany::reports {

void write_summary(const std::string& folder, const Summary& summary) {
  const std::string json = dump_json(to_json(summary)), csv = to_csv(summary),
                    html = to_html(summary);
  write_text(folder + "/summary.json", json);
  write_text(folder + "/summary.csv", csv);
  write_text(folder + "/report.html", html);
}

}  // namespace howmany::reports
