// The cases of backend_bench: which operation, backend, ranks and size, in which order. Values
// only.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "benches/comm/collective_timing.h"
#include "benches/common/workload.h"

namespace howmany::benches {

struct BackendFlags {
  std::vector<std::string> ops, backends, models, dtypes = {"f32"};
  std::string devices, samples;
  std::vector<int> counts;
  int64_t min_bytes = 4, max_bytes = 1 << 30, factor = 4;
  double budget_seconds = 30;
  int least_calls = kCallsForAnInterval;
  Workload work;
  bool list = false, no_overlap = false, in_place = false;
};

struct BackendCase {
  std::string name, op, model;
  Workload work;
  Dtype dtype = Dtype::f32;
  int64_t bytes = 0;

  // Else "pace", how fast the ranks are by themselves, "links", how fast their links are, or
  // "overlap", an all_reduce beside matrix products.
  bool is_collective() const;
  // Ranks from a neighbour on another host, else 1: see time_links.
  int apart() const;
};

// In the order they are measured: small sizes first over all operations, so that what time cuts off
// is the largest sizes. Throws std::invalid_argument for what is unknown or cannot be.
std::vector<BackendCase> backend_cases(const BackendFlags& flags, const Place& place);

// Bytes of the buckets in which ddp sends the gradients of this model, in order, the loss included.
std::vector<int64_t> bucket_bytes(const std::string& model);

// Over which processes have to meet.
std::set<std::string> process_backends(const std::vector<BackendCase>& cases);
int processes_needed(const std::vector<BackendCase>& cases);

// Why the buffers do not fit into half of the free memory, so that measuring does not push the
// machine into swapping; empty when they do.
std::string too_large(const BackendCase& c);

}  // namespace howmany::benches
