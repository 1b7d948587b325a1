// SPDX-License-Identifier: Apache-2.0
// The cases of backend_bench and their order: operation, backend, ranks and size.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "benches/comm/collective_timing.h"
#include "benches/common/workload.h"

namespace howmany::benches {

// The operation that is not a collective and can be named in --ops.
inline constexpr const char* kOverlap = "overlap";

struct BackendFlags {
  // `ops`: empty means all collectives and kOverlap.
  std::vector<std::string> ops, backends, models, dtypes = {"f32"};
  std::string devices, samples;
  std::vector<int> counts;
  int64_t min_bytes = 4, max_bytes = 1 << 30, factor = 4;
  double budget_seconds = 30;
  Workload work;
  bool list = false;
};

// Parses the command line of backend_bench, as parse() of program.h does.
std::vector<std::string> parse_backend(int argc, char** argv, BackendFlags& flags);

struct BackendCase {
  std::string name, op, model;
  Workload work;
  Dtype dtype = Dtype::f32;
  int64_t bytes = 0;

  // If false, `op` is "pace" (the compute speed of the ranks) or "overlap" (an all_reduce
  // concurrent with matrix products).
  bool is_collective() const { return op != "pace" && op != kOverlap; }
};

// Returns the cases in the order they are measured. Small sizes of all operations come first, so
// that only the largest sizes are lost if time runs out. Throws std::invalid_argument if a name is
// unknown or a case is impossible.
std::vector<BackendCase> backend_cases(const BackendFlags& flags, const Place& place);

// The gradient buckets of a model, in order, and its name. `model` is one of ours, or
// "NAME=BYTES,BYTES" for any other. The last bucket of ours includes the loss. Throws
// std::invalid_argument.
struct ModelBuckets {
  std::string name;
  std::vector<int64_t> bytes;
};
ModelBuckets model_buckets(const std::string& model);

// The backends that must connect processes.
std::set<std::string> process_backends(const std::vector<BackendCase>& cases);
int processes_needed(const std::vector<BackendCase>& cases);

// Returns an error text if the buffers do not fit into half of the free memory, else "". The bound
// keeps the measurement from making the machine swap.
std::string too_large(const BackendCase& c);

}  // namespace howmany::benches
