// The check before any timing: does one step of a mode leave what `single` leaves? A wrong result
// is an error, never a number.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "benches/workload.h"

namespace howmany::benches {

class WrongData : public Error {
 public:
  using Error::Error;
};

struct StepResult {
  double loss = 0;
  std::vector<Tensor> grads;  // in the order of the parameters
};

// One step of `single` on `global`, divided into `shares` as the modes divide it and summed: batch
// norm sees the same rows as on the devices, and for every other model it is the undivided step.
StepResult expected_step(const Workload& work, const Batch& global, int shares, Device device);

// What is wrong, in words; empty when loss and every gradient agree within `tolerance`, relative.
std::string difference(const StepResult& expected, double loss, std::span<Param* const> params,
                       double tolerance);

// Runs the first step of `trainer` and throws WrongData on every rank when it is not as expected;
// on one device also compares the kernels with the reference where that is quick. Collective.
void verify_first_step(const Workload& work, const Dataset& data, Trainer& trainer, Comm& comm,
                       Device device);

}  // namespace howmany::benches
