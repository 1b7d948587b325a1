// SPDX-License-Identifier: Apache-2.0
// speedup_bench --rehearse: one case, of as many ranks as the cost table has.
#pragma once

#include <string>
#include <vector>

#include "benches/speedup/flags.h"
#include "parallel/launch/launch.h"

namespace howmany::benches {

// Runs it, or prints its name with --list. `google` are the flags of Google Benchmark. Returns the
// exit code. Throws std::invalid_argument if the flags cannot be rehearsed.
int run_rehearsal(const SpeedupFlags& flags, const Place& place, std::vector<std::string> google,
                  const char* program);

}  // namespace howmany::benches
