// SPDX-License-Identifier: Apache-2.0
// The options of a parallel mode.
#pragma once

#include <string>

namespace howmany {

// Options of the mode text: "model:placement=0-3:cpu:0+4-:cpu:1,micro_batches=4".
struct ModeOptions {
  std::string placement = "";       // see parse_placement(); empty: balanced by measured times
  int micro_batches = 0;            // 0: the default of the mode
  std::string schedule = "1f1b";    // see schedule.h
  int accumulate = 1;               // micro-batches of a step; gradients are exchanged once
  bool recompute = false;           // recomputes activations before backward (checkpointing)
  bool graph = false;               // captures the step of a GPU once and launches it as a graph
  int level = 3;                    // sharded: 1, 2 or 3, see modes/shard.h
  int ways = 0;                     // ranks that divide a layer; 0: all (tensor), one (hybrid)
  bool sequence = false;            // tensor: divides the positions between its layers
  int stages = 0;                   // per replica (hybrid); 0: default_stages(world)
  std::string across = "pipeline";  // hybrid: stages are ranks; or "model": devices of each rank
};

}  // namespace howmany
