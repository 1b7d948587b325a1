// SPDX-License-Identifier: Apache-2.0
// Short texts of rows, changes and ratios, for any value of an untrusted file. Values only; safe
// from any thread.
#pragma once

#include <optional>
#include <string>

#include "reports/regression/verdict.h"

namespace howmany::reports {

// A share as percent with a sign: "+5.21 %", "+9900 %", "> 1000x". "-" if it is not finite.
std::string change_text(double share, int decimals = 2);
// "1.053", "120", "> 1000x".
std::string ratio_text(double ratio);
// "[+3.10, +7.40] %". "" if there is no interval.
std::string interval_text(const std::optional<Interval>& interval);

std::string change_text(const Row& row);                        // "+5.21 %", or "-" if unknown
std::string value_text(const Row& row, std::optional<double>);  // "1.23 ms", "4.5 M 1/s"
std::string p_text(const Row& row);                             // of the likelier direction
std::string title(const Row& row);         // the benchmark, and the metric unless it is real_time
std::string short_title(const Row& row);   // title() cut to kNameWidth columns
std::string samples_text(const Row& row);  // "20", or "20/18" if the sides differ
// Returns one sentence: the change, or why there is no verdict.
std::string sentence(const Row& row);
// Returns "signed rank of pairs, Holm's correction, alpha 0.05, floor 1 %".
std::string method(const Comparison& comparison);

}  // namespace howmany::reports
