// What bounds the number of loader workers before anything is measured, one line each: cores,
// /dev/shm, memory, descriptors, processes. What PyTorch's worker processes need is told as such,
// since our own threads need less. Values only; not tied to any thread.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "reports/workers/model.h"

namespace howmany::reports {

// As `loader_bench --limits` tells them.
struct LoaderLimits {
  double cores = 1;
  std::string cores_because;
  std::vector<std::string> cpu_limits;  // each as "affinity mask: 4 (0-3)"
  double memory_bytes = 0;
  std::string memory_because;
  std::optional<double> shm_bytes;
  double descriptors = 1024;
  std::optional<double> processes;
  std::string processes_because;
  std::string gpu, no_nvjpeg;  // "cuda:0", and why nvJPEG cannot decode on it; empty: none, it can
};
LoaderLimits limits_from_json(const nlohmann::json& json, const std::string& source);

struct WorkerBound {
  std::string what;       // "/dev/shm"
  int most = 0;           // workers of each device
  bool hard = true;       // beyond it something fails; else more only brings no more
  std::string because;    // "64 MB free, 38.5 MB a batch of 64, 2 ahead for each worker"
  bool too_many = false;  // devices: not even without workers
};
// One for each limit. `sample_bytes` 0: unknown, then memory and /dev/shm do not bound.
std::vector<WorkerBound> worker_bounds(const LoaderLimits& limits, const LoaderDemand& asked,
                                       double sample_bytes);
// The least of the hard ones, at least 0, at most 1024.
int most_workers(const std::vector<WorkerBound>& bounds);
// Of the cores that were measured, no more than may be used: where a quota deals them out, what is
// measured within a period of it is any number. All of less than a core is one thread's worth.
double usable_cores(double measured, const LoaderLimits& limits);

}  // namespace howmany::reports
