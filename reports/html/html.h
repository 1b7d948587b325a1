// A summary as one page, report.html: the answer first, then charts, tables, how it was measured
// and what was marked. The page is whole in itself (no script, nothing is fetched), may be of a
// summary that others made (everything is escaped and its size is bounded: what is left out is
// said), and tells what the summary tells: nothing is judged here. Values only; not tied to any
// thread.
#pragma once

#include <string>

#include "reports/results/record.h"

namespace howmany::reports {

constexpr size_t kMostHtmlRows = 2000, kMostHtmlTables = 60;

std::string to_html(const Summary& summary);

}  // namespace howmany::reports
