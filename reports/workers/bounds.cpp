// SPDX-License-Identifier: Apache-2.0
#include "reports/workers/bounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/schema/context.h"
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

double at_least_zero(const JsonNode& node) {
  if (node.number() < 0) node.fail("expected a number of 0 or more");
  return node.number();
}

// A device holds at most (prefetch * w + 2) batches at a time.
int workers_for_batches(double room, double batch_bytes, const LoaderDemand& asked,
                        double worker_bytes) {
  const double each = kUsable * room / asked.devices - 2 * batch_bytes;
  return whole(each / (asked.prefetch * batch_bytes + worker_bytes));
}

}  // namespace

std::vector<WorkerBound> worker_bounds(const nlohmann::json& limits, const LoaderDemand& asked,
                                       double sample_bytes) {
  const JsonNode root(limits, context::kLoaderLimits);
  const int devices = asked.devices;
  std::string cores = root.at(limit::kCoresBecause).string();
  if (devices > 1) cores += fmt::format(", for {} devices", devices);
  std::vector<WorkerBound> bounds = {
      {"cores", std::max(1, whole(at_least_zero(root.at(limit::kCores)) / devices)), false, cores}};
  const double memory = at_least_zero(root.at(limit::kMemoryBytes));
  const std::string memory_because = root.at(limit::kMemoryBecause).string();
  if (const double batch = sample_bytes * static_cast<double>(asked.batch); batch > 0) {
    if (const auto free = root.find(limit::kShmBytes))
      bounds.push_back({"/dev/shm (PyTorch)",
                        workers_for_batches(at_least_zero(*free), batch, asked, 0), true,
                        fmt::format("{} free; {} a batch, {} ahead for each worker and 2 more",
                                    bytes(free->number()), bytes(batch), asked.prefetch)});
    bounds.push_back({"memory (PyTorch)",
                      workers_for_batches(memory, batch, asked, kPythonWorkerBytes), true,
                      fmt::format("{} by {}; batches, and {} for a Python worker (assumed)",
                                  bytes(memory), memory_because, bytes(kPythonWorkerBytes)),
                      2 * batch * devices > kUsable * memory});
  }
  const double descriptors = at_least_zero(root.at(limit::kDescriptors));
  const double each = asked.prefetch * kTensorsOfBatch + kDescriptorsOfWorker;
  bounds.push_back(
      {"descriptors (PyTorch)",
       whole((descriptors - kDescriptorsInUse - 2 * kTensorsOfBatch) / each), true,
       fmt::format("ulimit -n {:.0f}; about {:.0f} for each worker", descriptors, each)});
  if (const auto processes = root.find(limit::kProcesses))
    bounds.push_back({"processes", whole(at_least_zero(*processes) / devices - 1), true,
                      fmt::format("{:.0f} left by {}", processes->number(),
                                  root.at(limit::kProcessesBecause).string())});
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
