// SPDX-License-Identifier: Apache-2.0
// The records of a script's ranks, as the hook wrote them (torch_hook/howmany_hook/record.py). The
// files are untrusted: read_records() throws Error or InputError that names the place. Values only;
// not tied to any thread.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "benches/common/step_log.h"

namespace howmany::benches {

// The hook makes this file in the folder if it fails.
constexpr const char* kFailedFile = "/failed";

// Seconds by the clock of the device (torch_hook/howmany_hook/phases.py).
struct RankPhases {
  double data = 0, epochs = 0, outside = 0, backward = 0, optimizer = 0, blocked = 0;
};

struct RankStep {
  double seconds = 0, wait = 0, backward = 0, optimizer = 0;
  int64_t samples = 0, forwarded = 0;  // of the loader's batches; of the model's inputs
  RankPhases phases = {};
};

// Seconds since the step began.
struct RankSpan {
  std::string phase;
  double at = 0, seconds = 0;
};
struct RankBucket {
  double bytes = 0, at = 0, ended = 0;  // ready, and exchanged
};
// A step after the timed ones (torch_hook/howmany_hook/detail.py).
struct RankDetail {
  int64_t step = 0;
  std::string mode;
  double began = 0, own = 0;  // by the clock of the host; seconds that only recording took
  std::vector<RankSpan> spans = {};
  std::vector<RankBucket> buckets = {};
};
// Of DistributedDataParallel.
struct RankDdp {
  bool bucket_view = false;
  double bucket_cap = 0;  // bytes
};

// Steps with one number of loader workers. Absent figures were not measured.
struct RankTurn {
  int64_t round = 0, workers = 0, prefetch = 0;  // prefetch: batches ahead of each worker
  bool own = false;                              // the script's own number; rank 0 knows
  int64_t first = 0, last = 0;
  double batch_bytes = 0;                     // of the tensors of one batch
  std::optional<double> first_batch_s;        // from starting the workers to their first batch
  std::optional<double> alone_samples_per_s;  // batches taken as fast as they come
  std::optional<double> bytes_per_worker;
};

// Steps of a loop from one long step, without it, to the next (torch_hook/howmany_hook/cycles.py).
struct RankCycle {
  int64_t first = 0, last = 0;
};

// The collectives of a group that shows neither DDP nor FSDP
// (torch_hook/howmany_hook/exchange.py).
struct RankExchange {
  int64_t steps = 0, within = 0, elsewhere = 0;  // within: after backward, until the optimizer ends
  // By step: the sums of gradients and of parameters before the optimizer stepped, as text.
  std::map<int64_t, std::pair<std::string, std::string>> sums;
};

// A collective of a rehearsal, in the order of the calls.
struct RankCollective {
  int64_t step = 0;
  LoggedCollective call = {};
};

struct RankRecord {
  int64_t rank = 0, world = 1, threads = 0;
  std::string parallel, backend, device, torch, failed;
  double gradient_bytes = 0, peak_bytes = 0;
  int64_t parameters = 0;  // of the model or its first optimizer
  bool ended = false, complete = false, loader = true;
  bool by_backward = false;            // each backward pass is a step
  bool optimizer_in_backward = false;  // its time is part of that of backward
  int64_t first = 0, last = -1;        // timed; last < first: none. Those of a script that ended by
                                       // itself are known to rank 0
  std::optional<RankDdp> ddp;      // absent: another parallelism, or no steps after the timed ones
  bool own_hook = false;           // of communication, by the script
  int64_t cores = 0;               // 0: unknown
  std::string host;                // results have only the number of hosts
  double recording = 0;            // seconds of a step that the hook takes
  std::optional<int64_t> workers;  // of the loader that trains
  bool persistent_workers = false;
  double loader_cpu = 0;                 // CPU seconds of a fetch without workers
  std::map<std::string, double> memory;  // bytes, by the key of the metric; empty: not counted
  std::vector<RankCycle> cycles;         // in order, among the timed steps
  double alone = 0;                      // share of the time of long steps that did not recur
  std::optional<RankExchange> exchange;  // absent: the parallelism exchanges, or it is unknown
  std::optional<double> wrapped;         // share of the optimized parameters, of --try-ddp
  nlohmann::ordered_json counted;        // operations of a step; null: they were not counted
  std::vector<RankStep> steps;
  std::vector<RankDetail> details;  // by step
  std::vector<RankTurn> turns;
  std::vector<RankCollective> collectives;
};

// Returns the records in `folder`, by rank.
std::vector<RankRecord> read_records(const std::string& folder);

}  // namespace howmany::benches
