// What transfer_bench measures: copies of host memory by size and threads, many small ones, between
// NUMA nodes, loopback TCP, to and from devices and between them, and the transfers of one training
// step. What cannot be measured here is a case that is skipped, with the reason.
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
  bool ceilings = false;  // only what limits communication
};

struct TransferCase {
  std::string name;
  std::map<std::string, std::string> parameters;  // "kind" among them
  double bytes = 0;
  std::function<Samples(const TimingOptions&)> measure;
  std::string skipped = "";
  bool step = false;  // a whole training step, longer than everything else
};

// What measure() throws for what does not fit into its time: the reason.
class LeftOut : public Error {
 public:
  using Error::Error;
};

constexpr double kTimedShare = 0.7;  // of `howmany transfer --time-budget`, for timed copies
constexpr double kStepShare = 0.5;   // of these, for the whole steps of all models

// Of the budget of all cases that of one, in seconds.
double seconds_for(const TransferCase& c, const std::vector<TransferCase>& all, double budget);
// How long one step takes, in words, and the --time-budget that gives `steps` of them enough time.
std::string why_left_out(double step_seconds, size_t steps);

std::vector<TransferCase> transfer_cases(const TransferFlags& flags);

}  // namespace howmany::benches
