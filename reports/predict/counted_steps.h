// SPDX-License-Identifier: Apache-2.0
// The steps of a counted script on each number of GPUs of a cluster.
//
// Step. The operations take the times of the chip (op_time.h), in order. The collectives are
//   replayed among them with the times of the cluster (replay.h).
// Buckets. A script without a group exchanges its gradients as DistributedDataParallel would: in
//   the order that they are ready, in buckets of 1 MiB and then of 25 MiB.
// Scaling. Strong, if a rank of the group has another number of samples than the script alone. Then
//   only the counted numbers of GPUs are predicted.
// Memory. Between counts and beyond them, the reserved bytes are linear in 1 / GPUs, as FSDP
// divides
//   them. Without a group, the buckets are added. 10 % of a GPU is left to its libraries. The time
//   of the optimizer is linear in 1 / GPUs too.
// Loader. It needs the cores that make the batches of a step in the time of the step. The rates do
//   not consider it.
// Source of the buckets. Reducer::rebuild_buckets of PyTorch, csrc/distributed/c10d/reducer.cpp.
// Thread safety. The functions are pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "reports/predict/counted.h"
#include "reports/predict/op_time.h"
#include "reports/predict/replay.h"
#include "reports/predict/step_forecast.h"

namespace howmany::reports {

struct CountedScript {
  std::string name;
  std::map<int, CountedStep> counts;  // by number of ranks that were pretended; not empty

  const CountedStep& alone() const { return counts.begin()->second; }
  const CountedStep& largest() const { return counts.rbegin()->second; }
  bool has_group() const { return largest().world > 1; }
};

bool is_strong(const CountedScript& script);

// The steps of a log without times of collectives. `scale`: of all operations.
StepLog log_of(const CountedStep& step, const OpTimes& times, double scale = 1);

// The bytes that one rank reserves on that number of GPUs.
double reserved_on(const CountedScript& script, int devices);

// Predicts the numbers of GPUs up to options.up_to, and decides. Throws InputError as op_times()
// does, or if the ranks of a group exchange nothing.
Forecast forecast(const CountedScript& script, const Cluster& cluster,
                  const ForecastOptions& options);

}  // namespace howmany::reports
