// SPDX-License-Identifier: Apache-2.0
// The implementation of the modes that divide the layers: model, pipeline and hybrid. They differ
// in the mesh of ranks (data x stage x tensor) and in the number of stages per rank. One thread per
// mode makes calls.
#pragma once

#include <memory>
#include <string_view>

#include "parallel/modes/mesh.h"
#include "parallel/modes/mode.h"

namespace howmany {

struct StagedLayout {
  std::string_view mode;  // for messages
  MeshShape ranks;        // of args.comm, which may be null if there is one rank
  // True: each rank drives one stage per device, from threads. False: each rank along the stage
  // axis drives one stage.
  bool stages_are_devices = false;
};

// Collective over args.comm.
std::unique_ptr<Mode> staged(ModeArgs args, const StagedLayout& layout);

}  // namespace howmany
