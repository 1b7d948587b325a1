// Progress on stderr: a single rewriting line on a terminal, a plain line per finished run
// otherwise. One thread.
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
