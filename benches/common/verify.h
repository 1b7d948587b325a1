// The check before any timing: does one step of a mode leave what `single` leaves? A wrong result
// is an error, never a number.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "benches/common/workload.h"

namespace howmany::benches {

class WrongData : public Error {
 public:
  using Error::Error;
};

struct StepResult {
  double loss = 0;
  std::map<std::string, Tensor> grads;  // by the parameter's path
};

// Where a batch of `rows` is cut when every one of `shares` cuts its own into `micro_batches`: 0,
// the first row of each part, and `rows`.
std::vector<int64_t> cuts_of(int64_t rows, int shares, int micro_batches);

// One step of `single` on `global`, cut as the modes cut it and summed: batch norm sees the same
// rows as on the devices, and for every other model it is the undivided step. `earlier` steps on
// the same rows go before, since dropout goes by the number of the step.
StepResult expected_step(const Workload& work, const Batch& global,
                         const std::vector<int64_t>& cuts, Device device, int earlier = 0);

// What is wrong, in words; empty when loss and the gradient of every one of `params` agree within
// `tolerance`, relative.
std::string difference(const StepResult& expected, double loss, std::span<Param* const> params,
                       double tolerance);

// Runs the first step of `trainer` that it does as all later ones, has a rank of every part of the
// model compare, and throws WrongData on every rank when it is not as expected; on one device also
// compares the kernels with the reference where that is quick. Collective.
void verify_first_step(const Workload& work, const Dataset& data, Trainer& trainer, Comm& comm,
                       Device device);

}  // namespace howmany::benches
