// SPDX-License-Identifier: Apache-2.0
// The limit of the best measured rate of a loader.
#pragma once

#include <string>

#include "reports/workers/points.h"

namespace howmany::reports {

// Keeps references to `facts` and `best`, the point with the best rate.
class RateLimit {
 public:
  RateLimit(const WorkersFacts& facts, const WorkersPoint& best) : facts_(facts), best_(best) {}

  bool is_cores() const;
  // Returns the seconds per sample of waiting for reads in which other workers use the cores.
  double hidden_s() const;
  // Returns the nearest bound above the rate. If none is near, the cores.
  std::string name() const;
  // Returns the cores and the longest stage of a sample: "decoding on 2 cores".
  std::string name_of_cores() const;
  double samples_per_s_per_device() const { return rate_of(best_).value / facts_.asked.devices; }

 private:
  const WorkersFacts& facts_;
  const WorkersPoint& best_;
};

}  // namespace howmany::reports
