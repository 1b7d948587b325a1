// SPDX-License-Identifier: Apache-2.0
#include "parallel/modes/staged.h"

namespace howmany {

// One stage per rank.
std::unique_ptr<Mode> modes::pipeline(ModeArgs args) {
  const MeshShape ranks{.stage = args.comm->size()};
  return staged(std::move(args), {.mode = "pipeline", .ranks = ranks});
}

}  // namespace howmany
