// SPDX-License-Identifier: Apache-2.0
// Generates a script that checks the advice: a standard Python program that runs
// torch.utils.data.DataLoader on the same folder, with the advised number of workers and its
// neighbours. It prints its rate relative to ours. Values only; not tied to any thread.
#pragma once

#include <map>
#include <string>
#include "reports/workers/advise.h"
#include "reports/workers/points.h"

namespace howmany::reports {

struct CheckScript {
  std::string data;  // the data folder
  int64_t batch = 64, image_size = 224;
  int prefetch = 2;
  std::map<int, double> rates;  // our samples/s by workers; the script runs these numbers
};

// Returns the advised number of workers and its neighbours. Rates are measured if available, else
// predicted, and for one device.
CheckScript check_of(const WorkersFacts& facts, const WorkersAdvice& advice,
                     const std::string& data, int64_t image_size);
std::string check_script(const CheckScript& what);

}  // namespace howmany::reports
