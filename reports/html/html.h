// SPDX-License-Identifier: Apache-2.0
// Renders a summary as one HTML page, report.html: the answer, charts, tables, the method, the
// flags.
//
// Self-contained. The page has no script and fetches nothing.
// Untrusted input. All text is escaped. The size is bounded, and the page reports omissions.
// Content. The page shows the summary as it is; nothing is judged here.
// Thread safety. Values only; not tied to any thread.
#pragma once

#include <string>

#include "reports/results/record.h"

namespace howmany::reports {

constexpr size_t kMaxHtmlRows = 2000, kMaxHtmlTables = 60;

std::string to_html(const Summary& summary);
// The start of a page, up to <body>.
std::string page_head();

}  // namespace howmany::reports
