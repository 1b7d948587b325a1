// A Mode is a way to divide one training step over devices. step(batch) leaves in each owned Param
// the gradient of the global-batch mean loss and returns that loss, whatever is divided: the law
// every mode is tested against `single`. A mode is one file in parallel/modes plus its line here.
// One thread per mode calls; step() binds it to devices[0] while it runs, so a loop that holds its
// own DeviceScope pays for the binding once.
//
//   auto mode = make_mode("ddp", {.model = make_model("mlp"), .comm = &comm, .devices = {device}});
//   double loss = mode->step(batch);          // batch: the rows mode->share() owns
//   optimizer->step(mode->params());
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/loader.h"
#include "core/model.h"
#include "parallel/comm.h"
#include "parallel/grad_sync.h"

namespace howmany {

struct ModeTraits {
  bool over_ranks = false;    // one process or thread per device, joined by a Comm
  bool over_devices = false;  // one rank drives all devices
};

// X(name, "what is divided", traits)
#define HM_MODES(X)                                                               \
  X(single, "nothing: one device trains", ModeTraits{})                           \
  X(data_parallel, "the batch, over threads of one process (torch DataParallel)", \
    ModeTraits{.over_devices = true})                                             \
  X(ddp, "the batch, over ranks with overlapped all-reduce (torch DDP)",          \
    ModeTraits{.over_ranks = true})

struct ModeArgs {
  ModelSpec model;    // not yet materialized
  uint64_t seed = 1;  // of the parameters and of dropout
  Dtype dtype = Dtype::f32;
  Comm* comm = nullptr;              // the group, for modes over ranks; outlives the mode
  std::vector<Device> devices = {};  // this rank's devices: one, but for data_parallel
  GradSyncOptions sync = {};
};

class Mode {
 public:
  virtual ~Mode() = default;
  // Which rows of each global batch this rank feeds to step().
  virtual Share share() const { return {}; }
  virtual double step(const Batch& mine) = 0;
  // The parameters whose gradients are here after step(), for the optimizer.
  virtual std::vector<Param*> params() = 0;
  // Copies of all parameters and buffers by path on rank 0 (elsewhere empty). Collective.
  virtual std::map<std::string, Tensor> gather() = 0;
};

std::vector<std::string_view> mode_names();
// Throws std::invalid_argument for an unknown name, with the nearest suggested.
ModeTraits mode_traits(std::string_view name);
// Throws std::invalid_argument for an unknown name or arguments the mode cannot use. Collective
// over args.comm.
std::unique_ptr<Mode> make_mode(std::string_view name, ModeArgs args);

namespace modes {
#define X(name, what, traits) std::unique_ptr<Mode> name(ModeArgs args);
HM_MODES(X)
#undef X
}  // namespace modes

}  // namespace howmany
