// SPDX-License-Identifier: Apache-2.0
// The cases of transfer_bench. A case that cannot be measured here is skipped with a reason.
// * copies of host memory by size and threads, many small copies, copies between NUMA nodes
// * loopback TCP
// * copies to, from and between devices
// * the transfers of one training step
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "benches/common/timing.h"
#include "core/base/error.h"
#include "core/tensor/device.h"

namespace howmany::benches {

struct TransferFlags {
  int64_t min_bytes = 64, max_bytes = 256 << 20;
  std::vector<Device> devices = {};  // of one type, at least one
  std::vector<std::string> models = {};
  int64_t batch = 0;
  std::string device_list = "", samples = "";
  double budget_seconds = 20;
  bool list = false;
};

// Parses the command line of transfer_bench, as parse() of program.h does.
std::vector<std::string> parse_transfer(int argc, char** argv, TransferFlags& flags);

struct TransferCase {
  std::string name;
  std::map<std::string, std::string> parameters;  // including "kind"
  double bytes = 0;
  std::function<Samples(const TimingOptions&)> measure = {};
  std::string skipped = "";
  double weight = 1;  // of its share of the time; whole training steps have half of the time
};

// Thrown by measure() if the case does not fit into its time; the message is the reason.
class LeftOut : public Error {
 public:
  using Error::Error;
};

std::vector<TransferCase> transfer_cases(const TransferFlags& flags);

}  // namespace howmany::benches
