// Sums gradients over a group while backward still runs. ready(param) is called as gradients become
// final (Tape::on_final), finish() before the optimizer steps; afterwards every rank holds the same
// sums. Gradients already carry 1/global batch (see loss.h), so a sum is the mean. Destructors
// never communicate. One thread calls.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "core/nn/layer.h"
#include "parallel/comm.h"
#include "parallel/step_loss.h"

namespace howmany {

struct GradSyncOptions {
  bool bucketed = true;  // false: one all_reduce per parameter, in ready(), on the calling thread
  int64_t bucket_bytes = 25 << 20;  // torch DDP's defaults
  int64_t first_bucket_bytes = 1 << 20;
  bool host_waits = false;  // in finish(), as Work::finish() does
};

class GradSync {
 public:
  virtual ~GradSync() = default;
  virtual void ready(Param& param) = 0;
  // How many exchanges these set off, when they are the first to be ready.
  virtual size_t exchanges(std::span<Param* const> ready) const = 0;
  // Waits for everything, as Work::wait() does unless told otherwise, gives parameters that got no
  // gradient a zero one, and returns `loss`, f64 [1] on any device, summed over the group: it rides
  // in the last bucket.
  virtual StepLoss finish(const Tensor& loss) = 0;
};

// Buckets are filled in reverse parameter order and gradients become views into them, so nothing is
// copied. Parameters must be materialized, the same on every rank, and outlive the result. Not
// collective.
std::unique_ptr<GradSync> make_grad_sync(Comm& comm, std::span<Param* const> params,
                                         const GradSyncOptions& options);

}  // namespace howmany
