// SPDX-License-Identifier: Apache-2.0
#include "reports/workers/bounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/schema/limits.h"
#include "core/base/text/format.h"
#include "core/base/text/json.h"

namespace howmany::reports {
namespace {

constexpr double kMaxWorkers = 1024;
// Memory of a Python worker process that has imported torch (assumed, not measured).
constexpr double kPythonWorkerBytes = 200e6;
constexpr double kUsable = 0.9;  // of memory and /dev/shm
constexpr double kDescriptorsOfWorker = 4, kTensorsOfBatch = 2, kDescriptorsInUse = 64;

int whole(double workers) {
  return static_cast<int>(std::clamp(std::floor(workers), 0.0, kMaxWorkers));
}

std::string bytes(double value) { return format_count(value) + "B"; }

// A device holds at most (prefetch * w + 2) batches at a time.
double workers_for_batches(double room, double batch_bytes, const LoaderDemand& asked,
                           double worker_bytes = 0) {
  const double each = room / asked.devices - 2 * batch_bytes;
  return each / (asked.prefetch * batch_bytes + worker_bytes);
}

WorkerBound cores(const LoaderLimits& limits, const LoaderDemand& asked) {
  const double each = limits.cores / asked.devices;
  std::string because = limits.cores_because;
  if (asked.devices > 1) because += fmt::format(", for {} devices", asked.devices);
  return {"cores", std::max(1, whole(each)), false, because};
}

WorkerBound shared_memory(double free, const LoaderDemand& asked, double batch_bytes) {
  return {"/dev/shm (PyTorch)", whole(workers_for_batches(kUsable * free, batch_bytes, asked)),
          true,
          fmt::format("{} free; {} a batch, {} ahead for each worker and 2 more", bytes(free),
                      bytes(batch_bytes), asked.prefetch)};
}

WorkerBound memory(const LoaderLimits& limits, const LoaderDemand& asked, double batch_bytes) {
  const double most =
      workers_for_batches(kUsable * limits.memory_bytes, batch_bytes, asked, kPythonWorkerBytes);
  return {"memory (PyTorch)", whole(most), true,
          fmt::format("{} by {}; batches, and {} for a Python worker (assumed)",
                      bytes(limits.memory_bytes), limits.memory_because, bytes(kPythonWorkerBytes)),
          2 * batch_bytes * asked.devices > kUsable * limits.memory_bytes};
}

WorkerBound descriptors(const LoaderLimits& limits, const LoaderDemand& asked) {
  const double room = limits.descriptors - kDescriptorsInUse - 2 * kTensorsOfBatch;
  const double each = asked.prefetch * kTensorsOfBatch + kDescriptorsOfWorker;
  return {"descriptors (PyTorch)", whole(room / each), true,
          fmt::format("ulimit -n {:.0f}; about {:.0f} for each worker", limits.descriptors, each)};
}

}  // namespace

LoaderLimits limits_from_json(const nlohmann::json& json, const std::string& source) {
  const JsonNode root(json, source);
  const auto at_least = [](const JsonNode& node, double low) {
    const double value = node.number();
    if (value < low) node.fail(fmt::format("expected a number of {} or more", low));
    return value;
  };
  LoaderLimits limits;
  limits.cores = at_least(root.at(limit::kCores), 0.001);
  limits.cores_because = root.at(limit::kCoresBecause).string();
  limits.memory_bytes = at_least(root.at(limit::kMemoryBytes), 0);
  limits.memory_because = root.at(limit::kMemoryBecause).string();
  if (const auto shm = root.find(limit::kShmBytes)) limits.shm_bytes = at_least(*shm, 0);
  limits.descriptors = at_least(root.at(limit::kDescriptors), 0);
  if (const auto processes = root.find(limit::kProcesses))
    limits.processes = at_least(*processes, 0);
  limits.processes_because = root.at(limit::kProcessesBecause).string();
  return limits;
}

std::vector<WorkerBound> worker_bounds(const LoaderLimits& limits, const LoaderDemand& asked,
                                       double sample_bytes) {
  std::vector<WorkerBound> bounds = {cores(limits, asked)};
  const double batch_bytes = sample_bytes * static_cast<double>(asked.batch);
  if (batch_bytes > 0) {
    if (limits.shm_bytes) bounds.push_back(shared_memory(*limits.shm_bytes, asked, batch_bytes));
    bounds.push_back(memory(limits, asked, batch_bytes));
  }
  bounds.push_back(descriptors(limits, asked));
  if (limits.processes)
    bounds.push_back(
        {"processes", whole(*limits.processes / asked.devices - 1), true,
         fmt::format("{:.0f} left by {}", *limits.processes, limits.processes_because)});
  return bounds;
}

int most_workers(const std::vector<WorkerBound>& bounds) {
  int most = static_cast<int>(kMaxWorkers);
  for (const WorkerBound& bound : bounds)
    if (bound.hard) most = std::min(most, bound.most);
  return most;
}

std::vector<std::string> bound_notes(const std::vector<WorkerBound>& bounds) {
  std::vector<std::string> notes;
  int useful = 0;
  for (const WorkerBound& b : bounds)
    if (!b.hard) useful = std::max(useful, b.most);
  for (const WorkerBound& b : bounds)
    if (b.hard && b.most < useful)
      notes.push_back(
          fmt::format("No more than {} by {}: {}.", number(b.most, "worker"), b.what, b.because));
  return notes;
}

}  // namespace howmany::reports
