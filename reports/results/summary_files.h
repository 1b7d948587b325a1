// SPDX-License-Identifier: Apache-2.0
// Writes the summary files of a results folder: summary.json, summary.csv and report.html. Throws
// InputError if one cannot be written. A folder must have one writer at a time.
#pragma once

#include <string>

#include "reports/results/record.h"

namespace howmany::reports {

void write_summary(const std::string& folder, const Summary& summary);
// Rewrites report.html in the folder of `path` if `path` is a summary.json. If it cannot be
// written, prints the reason on stderr, because the folder may not be ours.
void write_report_again(const std::string& path, Summary summary);

}  // namespace howmany::reports
