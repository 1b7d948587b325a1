// SPDX-License-Identifier: Apache-2.0
// Measures a script with several numbers of loader workers, which take turns in one training run.
#pragma once

#include "benches/script/flags.h"

namespace howmany::benches {

// Runs the command, then registers one benchmark per turn, in their order:
// loader/script/NAME/workers:W. A name repeats, once per round. If the measurement failed, there is
// one benchmark, loader/script/NAME, which reports why. `flags` must outlive them.
void register_loader_turns(const ScriptFlags& flags);

}  // namespace howmany::benches
