// SPDX-License-Identifier: Apache-2.0
// Agreement::any() returns, on every rank, whether any rank passed true, for example to stop after
// this step. If the Comm works on a GPU, it returns the answer of the previous call (false in the
// first), so that the host never waits for the GPU. One thread at a time.
//
//   Agreement agreement(comm);
//   while (!agreement.any(stop_wanted)) step();
#pragma once

#include <cstdint>

#include "parallel/comm/comm.h"
#include "parallel/sync/step_loss.h"

namespace howmany {

class Agreement {
 public:
  explicit Agreement(Comm& comm) : comm_(comm) {}  // comm must outlive this
  bool any(bool mine);                             // collective

 private:
  Comm& comm_;
  StepLoss answer_;  // of the previous call; read late, as a loss is
};

// These are collective and block the host.
uint64_t of_rank_0(Comm& comm, uint64_t value);  // rank 0's value
bool on_all_ranks(Comm& comm, bool mine);        // whether every rank passed true

}  // namespace howmany
