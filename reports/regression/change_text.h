// SPDX-License-Identifier: Apache-2.0
// Short texts of changes and ratios, for any value of an untrusted file. Values only; safe from any
// thread.
#pragma once

#include <optional>
#include <string>

#include "core/base/statistics.h"

namespace howmany::reports {

// A share as percent with a sign: "+5.21 %", "+9900 %", "> 1000x". "-" if it is not finite.
std::string change_text(double share, int decimals = 2);
// "1.053", "120", "> 1000x".
std::string ratio_text(double ratio);
// "[+3.10, +7.40] %". "" if there is no interval.
std::string interval_text(const std::optional<Interval>& interval);

}  // namespace howmany::reports
