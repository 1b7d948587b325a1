// SPDX-License-Identifier: Apache-2.0
// A case of speedup_bench: a workload and the name of its row. Values only.
#pragma once

#include <string>
#include <vector>

#include "benches/common/report.h"
#include "benches/common/timing.h"
#include "benches/common/workload.h"
#include "benches/speedup/flags.h"

namespace howmany::benches {

struct Case {
  std::string name;
  Workload work;
  bool strong = false;
};

// The flags give the batch and all else.
Case make_case(const SpeedupFlags& flags, const std::string& model, const std::string& mode,
               const std::string& backend, std::vector<Device> devices);

// Returns the line of the file of samples.
SampleLine sample_line(const Case& c, const Samples& samples,
                       const std::vector<std::string>& marks);

}  // namespace howmany::benches
