// SPDX-License-Identifier: Apache-2.0
#include "core/base/error.h"
#include "parallel/modes/staged.h"

namespace howmany {

// Replicas as in ddp. Each is divided into stages over ranks, or over the devices of one rank.
std::unique_ptr<Mode> modes::hybrid(ModeArgs args) {
  const int world = args.comm->size();
  if (args.options.across == "model")
    return staged(std::move(args),
                  {.mode = "hybrid", .ranks = {.data = world}, .stages_are_devices = true});
  const int stages = args.options.stages > 0 ? args.options.stages : default_stages(world);
  HM_REQUIRE(world % stages == 0, "[hybrid] {} ranks do not divide into replicas of {} stages",
             world, stages);
  const MeshShape ranks{.data = world / stages, .stage = stages};
  return staged(std::move(args), {.mode = "hybrid", .ranks = ranks});
}

}  // namespace howmany
