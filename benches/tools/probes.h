// SPDX-License-Identifier: Apache-2.0
// Tries the parts of this build. A part counts as usable only after it has worked.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "parallel/launch/launch.h"

namespace howmany::benches {

struct Proof {
  std::string why;                             // what the trial observed
  std::map<std::string, std::string> details;  // what the part reports about itself
};

// Throws if the kernels are not usable.
Proof probe_kernels(std::string_view name);
// Connects two ranks: threads if the engine allows it, else copies of this program that call
// probe_as_rank(). Does not try if a launcher started several processes, because each would start
// more.
Proof probe_comm(std::string_view name, const Place& place);

// Implements `howmany-devices probe-rank NAME FILE`, which probe_comm() starts. Rank 0 writes its
// result or the error to the file.
constexpr std::string_view kProbeRank = "probe-rank";
void probe_as_rank(const std::string& name, const std::string& file);

}  // namespace howmany::benches
