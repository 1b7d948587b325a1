// SPDX-License-Identifier: Apache-2.0
// Replays the steps of a rehearsal (howmany gpus --up-to) for other numbers of devices.
//
// Model. A step is the program's own work, and collectives in their order on one stream:
//   start_k = max(call_k, end_{k-1}), end_k = start_k + T(kind_k, bytes_k, n).
//   A wait of the program for collective k ends at max(wait, end_k). The end of a backward pass
//   under DistributedDataParallel waits for its buckets: it is at max(last call, last end) of the
//   pass. So the last bucket is never hidden. The program's own work takes as long as in the log.
// Groups. A collective of all ranks gets T of n ranks, one of every s-th rank that of n / s ranks.
//   One of a part of the ranks has as many on n ranks.
// Stragglers. A step waits for the slowest of n ranks. If the own work of ranks varies from step to
//   step by the relative standard deviation s, independently and normally, the slowest takes about
//   1 + s z of the median, where z is the normal quantile at (n - 0.375) / (n + 0.25) (Blom 1958).
//   Ranks that are always slow are not known.
// Source. The overlap of DistributedDataParallel: Li et al. 2020, "PyTorch Distributed", section 4.
// Thread safety. The functions are pure.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "reports/cluster/cluster.h"

namespace howmany::reports {

struct LoggedCollective {
  Collective kind = Collective::kAllReduce;
  double bytes = 0;
  int ranks = 1, stride = 1;          // the ranks first, first + stride, ...
  double at = 0;                      // seconds from the start of the step to the call
  double seconds = 0;                 // T in the rehearsal
  int backward = -1;                  // of DDP: the backward pass that ends after it; else -1
  std::optional<double> waited = {};  // when the program began to wait for it
};

struct LoggedStep {
  double seconds = 0;
  std::vector<LoggedCollective> collectives;
};

struct StepLog {
  int world = 1;  // of the rehearsal
  std::vector<LoggedStep> steps;
};

// Parses the member "steps" of a line of samples. Throws InputError that names the place.
StepLog step_log_from(const nlohmann::json& steps, int world, const std::string& source);

// Returns why the step cannot be replayed on `devices`: its groups do not divide them. Empty if it
// can.
std::string replay_refusal(const StepLog& log, int devices);

// Returns the seconds of the step on `devices`. Throws InputError as Cluster::seconds() does.
double replayed_seconds(const LoggedStep& step, int world, const Cluster& cluster, int devices);
// Return the median over the steps, in the log and on `devices`. Throw InputError if there are
// none.
double logged_seconds(const StepLog& log);
double replayed_seconds(const StepLog& log, const Cluster& cluster, int devices);

// Returns s from the differences of successive steps, so that drift does not count. 0 if there are
// fewer than two.
double spread_of(const StepLog& log);
// Returns how many times as long as one rank's step the step of `devices` is, because of
// stragglers.
double straggler_factor(double spread, int devices);

}  // namespace howmany::reports
