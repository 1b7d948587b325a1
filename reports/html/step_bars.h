// SPDX-License-Identifier: Apache-2.0
// Draws the parts of profiled steps (`howmany gpus --profile`): a bar for each configuration, as
// long as its step, divided into compute, communication, data and so on. Inline SVG without a
// script, with the numbers as a text alternative. Text may come from untrusted files. Values only;
// not tied to any thread.
#pragma once

#include <string>

#include "reports/html/groups.h"

namespace howmany::reports {

// Returns "" if no measurement of the group was profiled. Draws at most kMaxBars bars.
constexpr size_t kMaxBars = 24;
std::string step_bars(const HtmlGroup& group);

}  // namespace howmany::reports
