// Runs a body on every rank of a group, as threads of this process, whatever carries the bytes.
#pragma once

#include <functional>
#include <string_view>

#include "parallel/launch.h"

namespace howmany::testing {

inline void run_ranks(std::string_view, int world, const std::function<void(Comm&)>& body) {
  launch_threads(world, body);
}

}  // namespace howmany::testing
