// SPDX-License-Identifier: Apache-2.0
// The check before any timing: one step of a mode must give the result of `single`. A wrong result
// is an error, never a figure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "benches/common/trainer.h"
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

// Returns the cuts of a batch of `rows` rows if each of `shares` cuts its share into
// `micro_batches`: 0, the first row of each further part, and `rows`.
std::vector<int64_t> cuts_of(int64_t rows, int shares, int micro_batches);

// Returns the result of one `single` step on `global`, cut as the modes cut it and summed. So batch
// norm sees the same rows as on the devices; for other models the sum equals the undivided step.
// `earlier` steps on the same rows run first, because dropout depends on the step number.
StepResult expected_step(const Workload& work, const Batch& global,
                         const std::vector<int64_t>& cuts, Device device, int earlier = 0);

// Describes the first difference. Returns "" if the loss and all of `grads` agree within the
// relative `tolerance`.
std::string difference(const StepResult& expected, double loss,
                       const std::map<std::string, Tensor>& grads, double tolerance);

// Returns the number of steps before a mode reaches its steady state. On a GPU, the second call of
// a problem measures its algorithms (core/gpu/tuning.h).
int settling_steps(const Workload& work, const Mode& mode);

// Runs and checks the first step of `trainer`; later steps run the same way. On GPUs two steps run
// before it, and then all ranks take the same algorithms (core/gpu/tuning.h): two algorithms may
// differ in the last bit of a sum, which bf16 and relu enlarge to any size. If the ranks
// communicate between GPUs, each first trains alone: loading a kernel may wait for a collective
// that another rank has not reached. One rank of every part of the model compares. If the result is
// wrong, throws WrongData on every rank. On one device it also compares the kernels with the
// reference, if that is quick: with few rows, and on a GPU with more than a tile of them.
// Collective. Returns the seconds until the first step of `trainer` ended, without an update; on
// GPUs including the steps before it.
double verify_first_step(const Workload& work, const Dataset& data, Trainer& trainer, Comm& comm,
                         Device device);

}  // namespace howmany::benches
