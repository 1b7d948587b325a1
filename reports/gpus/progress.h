// SPDX-License-Identifier: Apache-2.0
// Shows progress on stderr: one rewritten line on a terminal, else one line per finished run. One
// thread.
#pragma once

#include <string>

#include "reports/gpus/measure.h"

namespace howmany::reports {

class ProgressLine {
 public:
  explicit ProgressLine(bool quiet);
  ~ProgressLine();  // leaves the cursor on an empty line
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(const MeasureOptions::Progress& progress);

 private:
  void clear();

  bool quiet_, terminal_;
  bool drawn_ = false;
};

}  // namespace howmany::reports
