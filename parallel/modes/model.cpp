// SPDX-License-Identifier: Apache-2.0
#include "parallel/modes/staged.h"

namespace howmany {

// Places parts of the layers on the devices of one process, also of different types (embedding on
// cpu:0, the rest on cuda:0). With one micro-batch only one device computes at a time, as if a
// torch module is divided by hand. With more it is a pipeline between threads.
std::unique_ptr<Mode> modes::model(ModeArgs args) {
  args.comm = nullptr;
  return staged(std::move(args), {.mode = "model", .ranks = {}, .stages_are_devices = true});
}

}  // namespace howmany
