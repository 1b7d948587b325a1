// SPDX-License-Identifier: Apache-2.0
// Computes the time of a training step on devices that are not here, from the step itself. Each
// mode runs on meta devices (core/tensor/meta.h), where an operation takes its FLOP times a rate.
// Its collectives and messages take the times of a cost table, as in a rehearsal in turns
// (parallel/rehearsal.h). So buckets, prefetching, overlap, stages and bubbles are those of the
// mode's own code.
//
// Left out. Optimizer steps, kernels that take time without FLOP, and the smaller rate of smaller
//   products, as with tensor.
// Thread safety. One thread at a time.
#pragma once

#include "benches/common/workload.h"
#include "parallel/rehearsal.h"

namespace howmany::benches {

// Returns the FLOP of a step of `work.model` with `rows` samples in mode `single`.
double flop_of_step(const Workload& work, int64_t rows);

// Returns the seconds of a step on `work.count()` devices, one in each rank, where a FLOP takes
// `seconds_per_flop`. Uses the model, mode, global batch, precision and buckets. Throws
// std::invalid_argument as make_mode() does, and if a rank of the mode has more than one device.
double computed_step_seconds(const Workload& work, const CostTable& costs, double seconds_per_flop);

// Returns the ranks of one replica, one for each stage.
std::vector<int> ranks_of_a_replica(const Workload& work);

}  // namespace howmany::benches
