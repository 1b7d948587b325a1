// The cases of backend_bench: which operation, backend, ranks and size, in which order, and how
// long each may take. Values only, but for Schedule, which one thread uses.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "benches/collective_timing.h"
#include "benches/workload.h"

namespace howmany::benches {

struct BackendFlags {
  std::vector<std::string> ops, backends, models;
  std::string devices, samples;
  std::vector<int> counts;
  std::string dtype = "f32";
  int64_t min_bytes = 4, max_bytes = 64 << 20, factor = 4;
  double budget_seconds = 30;
  int least_calls = kCallsForAnInterval;
  Workload work;
  bool list = false, no_overlap = false;
};

struct BackendCase {
  std::string name, op, model;  // op "overlap": an all_reduce beside matrix products
  Workload work;
  Dtype dtype = Dtype::f32;
  int64_t bytes = 0;
};

// In the order they are measured: small sizes first over all operations, so that what time cuts off
// is the largest sizes. Throws std::invalid_argument for what is unknown or cannot be.
std::vector<BackendCase> backend_cases(const BackendFlags& flags, const Place& place);

// Bytes of the buckets in which ddp sends the gradients of this model, in order, the loss included.
std::vector<int64_t> bucket_bytes(const std::string& model);

// The one backend between processes, "" for none: a launch has one. Throws std::invalid_argument
// for two.
std::string process_backend(const std::vector<BackendCase>& cases);
int processes_needed(const std::vector<BackendCase>& cases);

// Why the buffers do not fit into half of the free memory, so that measuring does not push the
// machine into swapping; empty when they do.
std::string too_large(const BackendCase& c);

// Deals out the time of a run: larger messages get more.
class Schedule {
 public:
  Schedule(const std::vector<BackendCase>& cases, double seconds, int least_calls);
  // Seconds for the next case, below 0 when it does not fit into what is left.
  double take(const BackendCase& c);
  // What the last case was taken to need, from the size measured before it; 0: not known.
  double needed() const { return needed_; }
  void took(const BackendCase& c, double seconds_per_call);

 private:
  double elapsed() const;
  double expected(const BackendCase& c) const;

  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  double seconds_, left_ = 0, needed_ = 0;
  int calls_;
  std::map<std::string, std::pair<int64_t, double>> last_;
};

}  // namespace howmany::benches
