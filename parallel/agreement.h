// Whether any rank of a group wants something, like to end after this step: all ask after every
// step and get the same answer. Where a GPU carries the question the answer is that to the question
// before, as its loss is read a step late, so that it never stands still for the host. One thread.
//
//   Agreement agreement(comm);
//   while (!agreement.any(stop_wanted)) step();
#pragma once

#include "parallel/comm.h"
#include "parallel/step_loss.h"

namespace howmany {

class Agreement {
 public:
  explicit Agreement(Comm& comm) : comm_(comm) {}  // which outlives this
  bool any(bool mine);                             // collective

 private:
  Comm& comm_;
  StepLoss answer_;  // a number that is on its way, as a loss is
};

}  // namespace howmany
