// SPDX-License-Identifier: Apache-2.0
// A training step of the user's own script as a list of operations, counted without a GPU
// (script_bench --count): the member "counted" of a line of samples.
//
// {"way": "shapes",               // or "real": the step was computed on the CPU
//  "device": "NVIDIA A100",       // that the script took for its own
//  "world": 8,                    // ranks of the script's group; 1: it formed none
//  "samples": 32,                 // of a step and rank; 0: unknown
//  "micro_batches": 1,            // backward passes of a step
//  "parallel": "ddp",             // "none", "ddp", "fsdp" or "group"
//  "compiled": false,             // by torch.compile
//  "kinds": [{"op": "addmm", "work": "product", "dtype": "f16", "flop": 1.2e9, "read": 123,
//             "written": 456, "phase": "forward"}],
//  "order": [0, 0, -1],           // k >= 0 is kinds[k], and -1-i is the call of collectives[i]
//  "collectives": [{"op": "all_reduce", "bytes": 26214400, "ranks": 8, "stride": 1, "waited": 57}],
//  "gradients": [[place, bytes]], // of each parameter, in the order that they were ready
//  "host_ops": 1234,              // operations that Python called
//  "memory": {"parameters": 1, "gradients": 1, "optimizer": 1, "peak": 1, "reserved": 1},  // bytes
//  "loader": {"core_s_per_batch": 0.012, "samples": 32, "workers": 4},  // absent: no DataLoader
//  "answered": {"item": 3},       // data-dependent values that were made up
//  "refused": null}               // or why nothing follows from the count; then the rest may miss
// Places are indices of "order". "waited" is the place before which the script waited for the
// collective; absent: the end of its backward pass, as under DistributedDataParallel.
// Thread safety. Values only; not tied to any thread.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reports/cluster/cluster.h"

namespace howmany::reports {

// kMemory: bound by the bandwidth of the memory. kUnknown: without a formula for its FLOP.
enum class OpWork { kProduct, kConvolution, kAttention, kMemory, kUnknown };
enum class OpPhase { kForward, kBackward, kOptimizer };

// A distinct operation.
struct CountedOp {
  std::string op;
  OpWork work = OpWork::kMemory;
  std::string dtype;                       // of its inputs: "f32", "tf32", "f16", "bf16", ...
  double flop = 0, read = 0, written = 0;  // bytes
  OpPhase phase = OpPhase::kForward;
};

struct CountedCollective {
  Collective kind = Collective::kAllReduce;
  double bytes = 0;
  int ranks = 1, stride = 1;
  std::optional<size_t> waited;  // a place
};

struct ReadyGradient {
  size_t place = 0;
  double bytes = 0;
};

struct CountedMemory {
  double parameters = 0, gradients = 0, optimizer = 0, peak = 0, reserved = 0;
};

struct CountedLoader {
  double core_s_per_batch = 0, samples = 0;
  int workers = 0;
};

struct CountedStep {
  std::string refused;  // if not empty, nothing follows from the count
  std::string way, device, parallel;
  int world = 1;
  double samples = 0;  // of a step and rank; 0: unknown
  int micro_batches = 1;
  bool compiled = false;
  std::vector<CountedOp> kinds;
  std::vector<int> order;
  std::vector<CountedCollective> collectives;
  std::vector<ReadyGradient> gradients;
  double host_ops = 0;
  CountedMemory memory;
  std::optional<CountedLoader> loader;
  std::map<std::string, int64_t> answered;

  // The last micro-batch alone if all have the same gradients, else all.
  std::span<const ReadyGradient> last_gradients() const;
  double flop() const;            // of a step
  double gradient_bytes() const;  // of last_gradients()
  size_t operations() const;      // of a step, without collectives
};

// Throws InputError that names the place. A collective that no cluster has times for makes the step
// `refused`.
CountedStep counted_from(const nlohmann::json& json, const std::string& source);

}  // namespace howmany::reports
