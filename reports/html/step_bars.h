// SPDX-License-Identifier: Apache-2.0
// Draws the parts of steps: a bar for each configuration, as long as its step, divided into parts.
// Inline SVG without a script, with the numbers as a text alternative. Text may come from untrusted
// files. Values only; not tied to any thread.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "reports/html/groups.h"

namespace howmany::reports {

struct BarPart {
  std::string word, css;  // `css`: the class with its colour
};
struct StepBar {
  std::string name;             // above the bar, without the length
  std::vector<double> seconds;  // of each part; 0 or not a time: none
  double step = 0;              // printed; 0: the sum of the parts
};

// Returns "" if no bar has a part. Draws at most kMaxBars bars. The legend names the parts that
// they have.
constexpr size_t kMaxBars = 24;
std::string stacked_bars(std::span<const BarPart> parts, const std::vector<StepBar>& bars);

// Draws the profiled steps of a group (`howmany gpus --profile`): compute, communication, data and
// so on. Returns "" if no measurement was profiled.
std::string step_bars(const HtmlGroup& group);

}  // namespace howmany::reports
