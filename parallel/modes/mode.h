// SPDX-License-Identifier: Apache-2.0
// A Mode divides one training step over devices. One mode is one file in parallel/modes and one
// line here.
//
// Result. step(batch) leaves the gradient of the global-batch mean loss in each owned Param and
//   returns that loss. Tests require every mode to be numerically equivalent to `single`.
// Thread safety. One thread per mode makes calls.
// Binding. step() binds the thread to devices[0]. A loop with its own DeviceScope binds once.
//
//   auto mode = make_mode("ddp", {.model = make_model("mlp"), .comm = &comm, .devices = {device}});
//   StepLoss loss = mode->step(batch);        // batch: the rows mode->share() owns
//   optimizer->step(mode->params());
//   loss.value();                             // blocks until a GPU is done: call it a step late
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/loader.h"
#include "core/nn/model.h"
#include "parallel/comm/comm.h"
#include "parallel/modes/mode_options.h"
#include "parallel/pipeline/placement.h"
#include "parallel/sync/grad_sync.h"
#include "parallel/sync/step_loss.h"

namespace howmany {

struct ModeTraits {
  bool over_ranks = false;    // one process or thread per device, joined by a Comm
  bool over_devices = false;  // one rank drives several devices
  bool equal_ranks = false;   // all ranks hold and do as much
};

constexpr ModeTraits kOverRanks{.over_ranks = true};
constexpr ModeTraits kOverEqualRanks{.over_ranks = true, .equal_ranks = true};
constexpr ModeTraits kOverDevices{.over_devices = true};

// X(name, "what is divided", traits, "options of the mode text")
#define HM_MODES(X)                                                                             \
  X(single, "nothing: one device trains", ModeTraits(), "graph recompute accumulate")           \
  X(data_parallel, "the batch, over threads of one process (torch DataParallel)", kOverDevices, \
    "recompute accumulate")                                                                     \
  X(ddp, "the batch, over ranks with overlapped all-reduce (torch DDP)", kOverEqualRanks,       \
    "graph recompute accumulate")                                                               \
  X(sharded, "the batch, gradients, optimizer state and parameters, over ranks (ZeRO, FSDP)",   \
    kOverEqualRanks, "level recompute accumulate")                                              \
  X(tensor, "each linear layer and the heads of attention, over ranks (Megatron-LM)",           \
    kOverEqualRanks, "ways sequence recompute accumulate")                                      \
  X(model, "the layers, over the devices of one process", kOverDevices,                         \
    "placement micro_batches schedule recompute")                                               \
  X(pipeline, "the layers, over ranks, in micro-batches", kOverRanks,                           \
    "micro_batches schedule recompute")                                                         \
  X(hybrid, "the batch over replicas, the layers over the devices of each", kOverRanks,         \
    "stages ways across micro_batches schedule recompute")

struct ModeArgs {
  ModelSpec model;    // not yet materialized
  uint64_t seed = 1;  // of parameter initialization and dropout
  Dtype dtype = Dtype::f32;
  Comm* comm = nullptr;                    // for modes over ranks; must outlive the mode
  std::vector<Device> devices = {};        // of this rank; several only for modes over devices
  double flop_per_byte = kCpuFlopPerByte;  // of meta devices; see MeasureUnits
  GradSyncOptions sync = {};
  // Batch norm uses the statistics of all replicas (per micro-batch) instead of its own.
  bool sync_batchnorm = false;
  ModeOptions options = {};
};

// Times of the last step in which this rank's devices did not compute, measured by device events.
// On a GPU: of the step before the last, which is complete (see StepClock).
struct StepReport {
  double bubble = 0;              // share of the step in which devices waited for other stages
  double theoretical_bubble = 0;  // see theoretical_bubble() in schedule.h
  double exposed_communication_seconds = 0;  // gradient exchange not overlapped by backward
  double waited_seconds = 0;                 // for other ranks
};

class Mode {
 public:
  virtual ~Mode() = default;
  // Returns the rows of each global batch that this rank passes to step().
  virtual Share share() const { return {}; }
  // Returns the number of micro-batches per rank for a global batch of that many rows.
  virtual int micro_batches(int64_t) const { return 1; }
  virtual StepLoss step(const Batch& mine) = 0;
  // Returns the number of steps with one batch shape before the mode reaches its steady state.
  virtual int warm_ups() const { return 0; }
  // Returns the parameters that this rank's optimizer updates. After step() they have their
  // gradients. Those of `sharded` are flat parts of the model's.
  virtual std::vector<Param*> params() = 0;
  // Returns the gradients of step() by path: those of params(), or of the whole model where its
  // parameters are divided. Collective.
  virtual std::map<std::string, Tensor> gradients();
  // Returns copies of all parameters and buffers by path on rank 0, an empty map on other ranks.
  // Collective.
  virtual std::map<std::string, Tensor> gather() = 0;
  virtual StepReport report() const { return {}; }
};

std::vector<std::string_view> mode_names();
// `text` is a name or "name:key=value,...". These throw std::invalid_argument if the name, an
// option or an argument is invalid. The message suggests the nearest name.
ModeTraits mode_traits(std::string_view text);
// Also throws if the mode cannot run on `devices`, the devices of one rank.
void check_mode(std::string_view text, const std::vector<Device>& devices);
// Throws std::invalid_argument if the mode cannot divide the model over `ranks`. Stages over the
// devices of one rank are checked when the mode is made.
void check_model(std::string_view text, const ModelSpec& model, int ranks);
// Returns the number of ranks that drive `devices` devices, evenly: one per device, one for all, or
// one per replica (hybrid:across=model).
int ranks_of(std::string_view text, int devices);
// Returns the number of stages that divide the layers over `ranks` ranks; 1 if the mode does not.
// Neighbouring stages are ranks / stages apart.
int stages_of(std::string_view text, int ranks);
// Returns the smallest divisor of `world` above 1, or 1 if world is 1.
int default_stages(int world);
// Options of the text override args.options. Collective over args.comm.
std::unique_ptr<Mode> make_mode(std::string_view text, ModeArgs args);

namespace modes {
#define X(name, what, traits, options) std::unique_ptr<Mode> name(ModeArgs args);
HM_MODES(X)
#undef X
}  // namespace modes

}  // namespace howmany
