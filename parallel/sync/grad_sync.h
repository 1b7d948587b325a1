// SPDX-License-Identifier: Apache-2.0
// GradSync all-reduces gradients while backward still runs. The caller calls ready(param) when a
// gradient is final (Tape::on_final), and finish() before the optimizer step. Then all ranks hold
// equal sums. Gradients are already divided by the global batch (see loss.h), so the sum is the
// mean. Destructors never communicate. One thread makes calls.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/nn/layer.h"
#include "parallel/comm/comm.h"
#include "parallel/sync/step_loss.h"

namespace howmany {

struct GradSyncOptions {
  bool bucketed = true;  // false: one all_reduce per parameter, in ready(), on the calling thread
  // A bucket ends with the parameter that reaches these, as in torch DDP, which has the same ones.
  int64_t bucket_bytes = 25 << 20, first_bucket_bytes = 1 << 20;
  bool host_waits = false;  // finish() blocks the host, as Work::finish() does
};

// Returns how many gradients of these bytes each bucket holds, in this order. At least one bucket.
std::vector<size_t> bucket_lengths(std::span<const int64_t> bytes, const GradSyncOptions& options);

class GradSync {
 public:
  virtual ~GradSync() = default;
  virtual void ready(Param& param) = 0;
  // Returns the number of exchanges that start if these parameters are the first to be ready.
  virtual size_t exchanges(std::span<Param* const> ready) const = 0;
  // Waits for all exchanges, as Work::wait() does (or see host_waits). Parameters without a
  // gradient get a zero one. Returns the sum over the group of `loss`, f64 [1] on any device, which
  // is part of the last bucket.
  virtual StepLoss finish(const Tensor& loss) = 0;
};

// Buckets are filled in reverse parameter order. Gradients become views into them, which avoids
// copies. Parameters must be materialized, equal on all ranks, and outlive the result. Not
// collective.
std::unique_ptr<GradSync> make_grad_sync(Comm& comm, std::span<Param* const> params,
                                         const GradSyncOptions& options);

}  // namespace howmany
