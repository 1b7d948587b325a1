// How many samples a second training takes from a loader: from an earlier run, or measured now.
// Time that training spent waiting for data is taken off, so that a slow loader of then does not
// hide what the device can take. One thread.
#pragma once

#include <string>

namespace howmany::reports {

struct Demand {
  double samples_per_s = 0;  // of each device
  std::string from;          // "ddp/mlp on 2 devices in DIR/summary.json"
};

// `path` is a summary.json, a speedup.json, or the folder of one. Of several configurations the
// fastest on `devices` devices counts, else the fastest on the nearest fewer. Throws InputError
// when there is none.
Demand demand_from_file(const std::string& path, int devices);

// Trains the model on one device for a few seconds, on data in memory. Throws InputError with the
// bench's own line when it fails.
Demand demand_of_model(const std::string& model, const std::string& device, int64_t batch,
                       double seconds, const std::string& folder);

}  // namespace howmany::reports
