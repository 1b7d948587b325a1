// SPDX-License-Identifier: Apache-2.0
// Computes the time of a training step on devices that are not here, from the step itself. Each
// mode runs on meta devices (core/tensor/meta.h), where an operation takes a fixed time and its
// FLOP times a rate. So smaller operations, as with `tensor`, have a smaller rate. Its collectives
// and messages take the times of a cost table, as simulated ranks
// have them (parallel/comm/simulation.h). So buckets, prefetching, overlap, stages and bubbles are
// those of the mode's own code.
//
// Left out. Optimizer steps, and the bytes that operations read and write.
// Thread safety. One thread at a time.
#pragma once

#include "benches/common/workload.h"
#include "parallel/comm/simulation.h"

namespace howmany::benches {

struct OperationSeconds {
  double per_flop = 0, fixed = 0;  // of each operation
};

struct StepWork {
  double flop = 0, operations = 0;
};

// Returns the work of a step of `work.model` with `rows` samples in mode `single`.
StepWork step_work(const Workload& work, int64_t rows);

// Returns the times with which that step takes `seconds`, of which `fixed` do not depend on the
// samples.
OperationSeconds operation_seconds(const StepWork& step, double seconds, double fixed);

// Returns the seconds of a step on `work.count()` devices, one in each rank. Uses the model, mode,
// global batch, precision and buckets. Throws std::invalid_argument as make_mode() does, and if a
// rank of the mode has more than one device.
double computed_step_seconds(const Workload& work, const CostTable& costs,
                             const OperationSeconds& seconds);

// Returns the ranks of one replica, one for each stage.
std::vector<int> ranks_of_a_replica(const Workload& work);

}  // namespace howmany::benches
