// What every folder of results holds of its summary: summary.json, summary.csv and report.html.
// Throws InputError when one cannot be written; not safe for two writers of one folder.
#pragma once

#include <string>

#include "reports/results/record.h"

namespace howmany::reports {

void write_summary(const std::string& folder, const Summary& summary);
// report.html alone, of the summary at `path`, where that is a folder's summary.json. A page that
// cannot be written is told on stderr: the folder may be of others.
void write_report_again(const std::string& path, Summary summary);

}  // namespace howmany::reports
