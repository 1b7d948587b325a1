// SPDX-License-Identifier: Apache-2.0
// Reads the JSON Lines that `--write history=FILE` writes. Files are untrusted: InputError names
// the file and the line. One thread.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "reports/regression/history.h"

namespace howmany::reports {

// Collects the lines {"commit", "date", "benchmark", "metric", "ratio"} of several files.
class HistoryReader {
 public:
  // Throws InputError for a line that is not such an object.
  void add(const std::string& text, const std::string& source);
  // Returns the series by benchmark and metric, with their points by date. Leaves the reader empty.
  std::vector<Series> take();

 private:
  void add_line(std::string_view line, const std::string& source, size_t number);

  std::vector<Series> all_;
  std::unordered_map<std::string, size_t> places_;  // by benchmark and metric
};

std::vector<Series> history_from_text(const std::string& text, const std::string& source);

}  // namespace howmany::reports
