// SPDX-License-Identifier: Apache-2.0
// Limits on the number of loader workers that are known before any measurement: cores, /dev/shm,
// memory, descriptors, processes. PyTorch's worker processes need more than our threads, so their
// limits are marked. Values only; not tied to any thread.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace howmany::reports {

struct LoaderDemand {
  int devices = 1;    // ranks, each with its own loader
  double demand = 0;  // samples/s per device; 0: as many as possible
  int prefetch = 2;   // batches ahead per worker
  int64_t batch = 64;
};

struct WorkerBound {
  std::string what;       // "/dev/shm"
  int most = 0;           // workers per device
  bool hard = true;       // true: more workers fail; false: more bring no gain
  std::string because;    // "64 MB free, 38.5 MB a batch of 64, 2 ahead for each worker"
  bool too_many = false;  // too many devices, even without workers
};
// Returns one bound per limit of the machine, which loader_bench describes (core/base/schema/
// limits.h). If `sample_bytes` is 0 (unknown), memory and /dev/shm are omitted. Throws InputError
// if `limits` is not such a description.
std::vector<WorkerBound> worker_bounds(const nlohmann::json& limits, const LoaderDemand& asked,
                                       double sample_bytes);
// Returns the smallest hard bound, between 0 and 1024.
int most_workers(const std::vector<WorkerBound>& bounds);
// Returns notes on the hard bounds below the number of cores. Raise these first.
std::vector<std::string> bound_notes(const std::vector<WorkerBound>& bounds);

}  // namespace howmany::reports
