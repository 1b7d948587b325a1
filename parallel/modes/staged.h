// The modes that divide the layers: model, pipeline and hybrid are one class over two questions,
// which ranks share the work (data x stage) and how many stages each of them drives. One thread per
// mode calls.
#pragma once

#include <memory>
#include <string_view>

#include "parallel/mesh.h"
#include "parallel/mode.h"

namespace howmany {

struct StagedLayout {
  std::string_view mode;  // begins the messages
  MeshShape ranks;        // of args.comm, which may be null for one rank
  // This rank drives a stage on each of its devices, from threads; else one stage, and the others
  // are those of the ranks along the stage axis.
  bool stages_are_devices = false;
};

// Collective over args.comm.
std::unique_ptr<Mode> staged(ModeArgs args, const StagedLayout& layout);

}  // namespace howmany
