// SPDX-License-Identifier: Apache-2.0
// Messages of a measuring run on stderr. One thread.
#pragma once

#include <string>

#include "reports/gpus/measure.h"

namespace howmany::reports {

class ProgressReport {
 public:
  // If `quiet`, only report_end() prints.
  explicit ProgressReport(bool quiet);
  ~ProgressReport();  // leaves the cursor on an empty line
  ProgressReport(const ProgressReport&) = delete;
  ProgressReport& operator=(const ProgressReport&) = delete;

  // Prints a sentence.
  void report(const std::string& text);
  // Prints the models, the devices, the expected time and the folder: "Measuring mlp with single
  // and ddp on 1 and 2 CPU devices (3 configurations, 3 rounds) for up to 100 s."
  void report_start(const Request& request, const std::string& folder);
  // On a terminal, rewrites one line; else prints one line per finished run.
  void report_step(const MeasureOptions::Progress& progress);
  // Prints the reasons why the results are incomplete, if they are.
  void report_end(const Results& results, const std::string& folder);

 private:
  void clear();

  bool quiet_, terminal_;
  bool drawn_ = false;
};

}  // namespace howmany::reports
