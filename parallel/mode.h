// A Mode is a way to divide one training step over devices. step(batch) leaves in each owned Param
// the gradient of the global-batch mean loss and returns that loss, whatever is divided: the law
// every mode is tested against `single`. A mode is one file in parallel/modes plus its line here.
// One thread per mode calls; step() binds it to devices[0] while it runs, so a loop that holds its
// own DeviceScope pays for the binding once.
//
//   auto mode = make_mode("ddp", {.model = make_model("mlp"), .comm = &comm, .devices = {device}});
//   StepLoss loss = mode->step(batch);        // batch: the rows mode->share() owns
//   optimizer->step(mode->params());
//   loss.value();                             // waits for a GPU: best asked for a step late
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/loader.h"
#include "core/nn/model.h"
#include "parallel/comm.h"
#include "parallel/grad_sync.h"
#include "parallel/step_loss.h"

namespace howmany {

struct ModeTraits {
  bool over_ranks = false;    // one process or thread per device, joined by a Comm
  bool over_devices = false;  // one rank drives all devices, or with over_ranks several
};

// X(name, "what is divided", traits, "options of the mode text")
#define HM_MODES(X)                                                                         \
  X(single, "nothing: one device trains", ModeTraits{}, "graph")                            \
  X(data_parallel, "the batch, over threads of one process (torch DataParallel)",           \
    ModeTraits{.over_devices = true}, "")                                                   \
  X(ddp, "the batch, over ranks with overlapped all-reduce (torch DDP)",                    \
    ModeTraits{.over_ranks = true}, "graph")                                                \
  X(model, "the layers, over the devices of one process", ModeTraits{.over_devices = true}, \
    "placement micro_batches schedule recompute")                                           \
  X(pipeline, "the layers, over ranks, in micro-batches", ModeTraits{.over_ranks = true},   \
    "micro_batches schedule recompute")                                                     \
  X(hybrid, "the batch over replicas, the layers over the devices of each",                 \
    ModeTraits{.over_ranks = true}, "stages across micro_batches schedule recompute")

// What the mode text says: "model:placement=0-3:cpu:0+4-:cpu:1,micro_batches=4".
struct ModeOptions {
  std::string placement = "";     // as parse_placement(); else balanced by measured times
  int micro_batches = 0;          // 0: the mode's own default
  std::string schedule = "1f1b";  // see schedule.h
  bool recompute = false;         // forward again before backward instead of keeping activations
  bool graph = false;             // a GPU's step is captured once and then asked for as a whole
  int stages =
      0;  // of hybrid, each replica's; 0: the smallest number above 1 that divides the world
  std::string across = "pipeline";  // hybrid: stages are ranks; or "model": devices of each rank
};

struct ModeArgs {
  ModelSpec model;    // not yet materialized
  uint64_t seed = 1;  // of the parameters and of dropout
  Dtype dtype = Dtype::f32;
  Comm* comm = nullptr;              // the group, for modes over ranks; outlives the mode
  std::vector<Device> devices = {};  // this rank's devices: one, but for modes over devices
  GradSyncOptions sync = {};
  // Batch norm by the statistics of all replicas (of each micro-batch); else each has its own.
  bool sync_batchnorm = false;
  ModeOptions options = {};
};

// Where the time of the last step went that no device computed in, by the devices' own clocks; this
// rank's view. Of a GPU it is the step before, whose end is waited for (see StepClock).
struct StepReport {
  double bubble = 0;              // share of the step its devices stood waiting for other stages
  double theoretical_bubble = 0;  // (p-1)/(m+p-1) of what ran
  double exposed_communication_seconds = 0;  // gradient exchange that backward did not hide
  double waited_seconds = 0;                 // for other ranks: not this rank's own work
};

class Mode {
 public:
  virtual ~Mode() = default;
  // Which rows of each global batch this rank feeds to step().
  virtual Share share() const { return {}; }
  // Into how many parts of its rows it cuts each rank's share of a batch.
  virtual int micro_batches(int64_t) const { return 1; }
  virtual StepLoss step(const Batch& mine) = 0;
  // How many steps of one shape of batch it takes before it does them as it will all later ones.
  virtual int warm_ups() const { return 0; }
  // The parameters whose gradients are here after step(), for the optimizer.
  virtual std::vector<Param*> params() = 0;
  // Copies of all parameters and buffers by path on rank 0 (elsewhere empty). Collective.
  virtual std::map<std::string, Tensor> gather() = 0;
  virtual StepReport report() const { return {}; }
};

std::vector<std::string_view> mode_names();
// `text` is a name or "name:key=value,...". These throw std::invalid_argument for an unknown name
// or option, with the nearest suggested, and for arguments the mode cannot use.
ModeTraits mode_traits(std::string_view text);
// ... and for what these devices of a rank cannot do.
void check_mode(std::string_view text, const std::vector<Device>& devices);
// How many ranks share `devices` devices evenly: all, one, or for hybrid:across=model in between.
int ranks_of(std::string_view text, int devices);
// The smallest number above 1 that divides `world`; 1 for 1.
int default_stages(int world);
// Options of the text go before args.options. Collective over args.comm.
std::unique_ptr<Mode> make_mode(std::string_view text, ModeArgs args);

namespace modes {
#define X(name, what, traits, options) std::unique_ptr<Mode> name(ModeArgs args);
HM_MODES(X)
#undef X
}  // namespace modes

}  // namespace howmany
