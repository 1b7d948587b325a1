// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/nn/cut.h"
#include "parallel/modes/staged.h"

namespace howmany {

// Replicas as in ddp. Each is divided into stages over ranks, or over the devices of one rank. With
// ways=n, n ranks divide the layers of each stage, as in tensor.
std::unique_ptr<Mode> modes::hybrid(ModeArgs args) {
  const int world = args.comm->size(), ways = std::max(1, args.options.ways);
  HM_REQUIRE(ways == 1 || args.options.across != "model",
             "[hybrid] ways={} divides layers over ranks: take across=pipeline", ways);
  if (args.options.across == "model")
    return staged(std::move(args),
                  {.mode = "hybrid", .ranks = {.data = world}, .stages_are_devices = true});
  HM_REQUIRE(world % ways == 0, "[hybrid] {} ranks do not divide into groups of ways={}: take {}",
             world, ways, nearest_divisor(world, ways));
  const int groups = world / ways;
  const int stages = args.options.stages > 0 ? args.options.stages : default_stages(groups);
  HM_REQUIRE(groups % stages == 0, "[hybrid] {} ranks do not divide into replicas of {} stages{}",
             world, stages, ways > 1 ? fmt::format(" of {} ranks", ways) : "");
  const MeshShape ranks{.data = groups / stages, .stage = stages, .tensor = ways};
  return staged(std::move(args), {.mode = "hybrid", .ranks = ranks});
}

}  // namespace howmany
