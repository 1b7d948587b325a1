// SPDX-License-Identifier: Apache-2.0
// The names of metrics and parameters as people read them, for tables and charts.
#pragma once

#include <string>

namespace howmany {

// "median_s" -> "median time", "cores_per_device" -> "cores per device". Units are left out, since
// values are shown with theirs.
std::string label_of(const std::string& key);

}  // namespace howmany
