// SPDX-License-Identifier: Apache-2.0
// Limits on the number of loader workers that are known before any measurement: cores, /dev/shm,
// memory, descriptors, processes. PyTorch's worker processes need more than our threads, so their
// limits are marked. Values only; not tied to any thread.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace howmany::reports {

// The limits of this machine, from the context of loader_bench.
struct LoaderLimits {
  double cores = 1;  // with the fraction of a quota
  std::string cores_because;
  double memory_bytes = 0;
  std::string memory_because;
  std::optional<double> shm_bytes;
  double descriptors = 1024;
  std::optional<double> processes;
  std::string processes_because;
};
LoaderLimits limits_from_json(const nlohmann::json& json, const std::string& source);

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
// Returns one bound per limit. If `sample_bytes` is 0 (unknown), memory and /dev/shm are omitted.
std::vector<WorkerBound> worker_bounds(const LoaderLimits& limits, const LoaderDemand& asked,
                                       double sample_bytes);
// Returns the smallest hard bound, between 0 and 1024.
int most_workers(const std::vector<WorkerBound>& bounds);
// Returns notes on the hard bounds below the number of cores. Raise these first.
std::vector<std::string> bound_notes(const std::vector<WorkerBound>& bounds);

}  // namespace howmany::reports
