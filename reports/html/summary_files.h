// SPDX-License-Identifier: Apache-2.0
// Writes the summary files of a results folder.
#pragma once

#include <string>

#include "reports/results/record.h"

namespace howmany::reports {

// Writes summary.json, summary.csv and report.html. Throws InputError if one cannot be written. A
// folder must have one writer at a time.
void write_summary(const std::string& folder, const Summary& summary);

}  // namespace howmany::reports
