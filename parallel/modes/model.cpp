#include "parallel/modes/staged.h"

namespace howmany {

// Part of the layers on each device of one process, embedding on cpu:0 and the rest on cuda:0 as
// well. With one micro-batch the devices take turns, as when a torch module is spread over devices
// by hand; more of them make it a pipeline between threads.
std::unique_ptr<Mode> modes::model(ModeArgs args) {
  args.comm = nullptr;
  return staged(std::move(args), {.mode = "model", .ranks = {}, .stages_are_devices = true});
}

}  // namespace howmany
