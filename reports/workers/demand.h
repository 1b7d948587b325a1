// SPDX-License-Identifier: Apache-2.0
// Determines the samples/s that training takes from a loader, from an earlier run or a new
// measurement. Excludes time that training waited for data, so that a slow loader does not reduce
// the demand. One thread.
#pragma once

#include <string>

namespace howmany::reports {

struct Demand {
  double samples_per_s = 0;  // per device
  std::string from;          // "ddp/mlp on 2 devices in DIR/summary.json"
};

// Reads the demand from a summary.json, a speedup.json, or the folder of one. Uses the fastest
// configuration on `devices` devices, else on the nearest smaller number. Throws InputError if
// there is none.
Demand demand_from_file(const std::string& path, int devices);

// Trains the model on one device for `seconds`, on data in memory. Throws InputError with the
// bench's message if it fails.
Demand demand_of_model(const std::string& model, const std::string& device, int64_t batch,
                       double seconds, const std::string& folder);

}  // namespace howmany::reports
