// SPDX-License-Identifier: Apache-2.0
// The cases of transfer_bench. A case that cannot be measured here is skipped with a reason.
// * copies of host memory by size and threads, many small copies, copies between NUMA nodes
// * loopback TCP
// * copies to, from and between devices
// * the transfers of one training step
#pragma once

#include <map>

#include "benches/common/timing.h"
#include "core/base/error.h"
#include "core/tensor/device.h"

namespace howmany::benches {

struct TransferFlags {
  int64_t min_bytes = 64, max_bytes = 256 << 20;
  std::vector<Device> devices = {};  // of one type, at least one
  std::vector<std::string> models = {};
  int64_t batch = 0;
  bool ceilings = false;  // only cases that limit communication
};

struct TransferCase {
  std::string name;
  std::map<std::string, std::string> parameters;  // including "kind"
  double bytes = 0;
  std::function<Samples(const TimingOptions&)> measure;
  std::string skipped = "";
  bool step = false;  // a whole training step, which takes longer than all other cases
};

// Thrown by measure() if the case does not fit into its time; the message is the reason.
class LeftOut : public Error {
 public:
  using Error::Error;
};

constexpr double kTimedShare = 0.7;  // share of `howmany transfer --time-budget` for timed copies
constexpr double kStepShare = 0.5;   // share of that for the whole steps of all models

// Returns the seconds of one case within the budget of all cases.
double seconds_for(const TransferCase& c, const std::vector<TransferCase>& all, double budget);
// Describes the duration of one step, and the --time-budget that is enough for `steps` such steps.
std::string why_left_out(double step_seconds, size_t steps);

std::vector<TransferCase> transfer_cases(const TransferFlags& flags);

}  // namespace howmany::benches
