// SPDX-License-Identifier: Apache-2.0
// The times of the steps of one run of a script: the member "why" of a line of
// speedup.samples.jsonl, as benches/script/evidence.h writes it. The file is untrusted:
// evidence_from() throws InputError that names the place. Values only; not tied to any thread.
//
// Times are seconds by the clock of the device: on a GPU between CUDA events, so a wait that the
// GPU does not see is none. All times of a rank have the same clock.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace howmany::reports {

// Means over the timed steps of a rank. `step` includes all of them; the rest of it is forward, and
// the time between backward and the optimizer.
struct RankTimes {
  double step = 0;
  double data = 0;       // waiting for a batch
  double epochs = 0;     // starts of a loader: its workers, and the longer wait for a first batch
  double outside = 0;    // from the optimizer's end to the next batch, without `epochs`
  double backward = 0;   // with the wait for gradients at its end
  double optimizer = 0;  // 0 if it is part of backward
  double blocked = 0;    // in collectives outside of backward
};

// A bucket of gradients of DistributedDataParallel. Seconds since the step began.
struct Bucket {
  double bytes = 0;
  double at = 0;     // its gradients were ready
  double ended = 0;  // it was exchanged
};

struct Span {
  std::string what;            // data, epochs, outside, forward, backward, optimizer, blocked
  double at = 0, seconds = 0;  // since the step began
};

// How a step after the timed ones ran.
enum class Mode {
  kSynced,  // as the timed ones, recorded
  kNoop,    // DistributedDataParallel, with a collective that does nothing
  kAlone,   // without DistributedDataParallel: each rank by itself
  kNarrow,  // as kAlone, with as many threads as the rank has cores
  kBf16,    // --try: gradients are exchanged as bfloat16
};

// One step after the timed ones, of one rank.
struct DetailStep {
  double train = 0;     // the step without data, epochs and outside
  double backward = 0;  // of it
  // Of `train`: in collectives, and from the last bucket to the end of backward.
  double blocked = 0;
  double began = 0;             // by the clock of its host
  std::vector<Span> spans;      // of kSynced
  std::vector<Bucket> buckets;  // of kSynced, in the order of the calls
};
struct DetailSteps {
  Mode mode = Mode::kSynced;
  std::vector<DetailStep> ranks;
};

struct StepEvidence {
  bool gpu = false;
  int hosts = 1;               // of the ranks
  int timed = 0;               // steps; 0: unknown
  int cycle = 0;               // steps from one long step to the next; 0: none recurs
  bool ddp = false;            // DistributedDataParallel exchanges the gradients
  double recording = 0;        // cost of the hook: share of a timed step
  int cores = 0, threads = 0;  // of a rank; 0: unknown
  double samples = 0;          // of a step of one rank
  double gradient_bytes = 0;   // of a rank
  std::optional<int> workers;  // of the loader that trains; absent: no loader
  bool persistent_workers = false;
  double loader_cpu = 0;     // CPU seconds of a batch, if workers is 0
  bool bucket_view = false;  // of DDP: gradients are views of buckets
  double bucket_cap = 0;     // bytes
  bool own_hook = false;     // the script registered a communication hook: no modes but kAlone
  std::vector<RankTimes> ranks;
  std::vector<DetailSteps> steps;
};

// Throws InputError if a time is negative, or a step has other ranks than the run.
StepEvidence evidence_from(const nlohmann::json& why, const std::string& source);

// Returns the steps of a mode.
std::vector<const DetailSteps*> steps_of(const StepEvidence& evidence, Mode mode);

}  // namespace howmany::reports
