// SPDX-License-Identifier: Apache-2.0
// Chooses a communication backend from measured collectives, by size, and compares its rate with
// the ceilings of the machine. Failed cells never win. If intervals overlap, the answer is
// uncertain. Values only; not tied to any thread.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "reports/comm/ranges.h"
#include "reports/results/record.h"

namespace howmany::reports {

// The sizes that were measured on every backend.
struct Reach {
  double to = 0;
  bool whole = true;    // no requested size is missing
  bool beyond = false;  // a requested size above `to` is missing
};

// One operation on one number of ranks, over all backends.
struct OperationResults {
  std::string op, dtype;
  int devices = 2;
  std::vector<NamedCurve> curves = {};  // of calls with a barrier before each
  std::vector<NamedCurve> sweep = {};   // `curves` without sizes that only a model's buckets use
  std::set<std::string> tried = {};     // all backends of the sweep, including those without a time
  std::map<std::string, AlphaBeta> fits = {};
  std::vector<BestRange> best = {};  // computed from the sweep
  Reach reach = {};
};

// Ceilings of this machine, measured in the same run. NaN if not measured.
struct Ceilings {
  double copy_one_thread = 0, copy_all_threads = 0, loopback_tcp = 0;  // bytes/s
};
// A backend's bus bandwidth relative to the ceiling of its transport.
struct PathVerdict {
  std::string backend, op, path;  // "loopback TCP"
  double bytes = 0, bytes_per_s = 0, ceiling = 0;
  double ratio() const { return bytes_per_s / ceiling; }
};

struct ModelTime {
  std::string model, dtype;
  std::vector<double> bytes = {};                // sizes of its gradient buckets
  std::map<std::string, CurvePoint> times = {};  // by backend: of all buckets in sequence
  std::map<std::string, int> missing = {};       // number of buckets without a time, if any
  std::set<std::string> failed = {};             // backends that failed at a bucket
};

// Comparison with published figures for the same hardware.
struct ReferenceLine {
  std::string op, verdict, system, source;  // verdict: "normal", "low", "high"
  double bytes = 0, bytes_per_s = 0, reference = 0;
};

// The same library under torch.distributed and under howmany. Ratios are torch's time divided by
// ours.
struct TorchGap {
  std::string backend, torch;     // "gloo", "torch:gloo"
  double ratio = 1;               // geometric mean over `sizes` common sizes
  double largest = 1, bytes = 0;  // the ratio furthest from 1, and its size
  int sizes = 0;
};

struct BackendAdvice {
  std::optional<std::string> recommended;
  bool certain = true, disturbed = false;  // disturbed: by other programs, see disturbance.h
  std::string reason;                      // a code of core/base/schema/reasons.h
  std::string because;                     // one sentence
  std::vector<std::string> notes;
  std::vector<OperationResults> operations;
  std::vector<ModelTime> models;
  Ceilings ceilings;
  std::vector<PathVerdict> verdicts;
  std::vector<TorchGap> torch;            // empty if torch was not measured
  std::vector<ReferenceLine> references;  // empty if no reference covers this machine
};

// Returns the driver's name of the GPU from a run's context. Empty without a GPU, and if the member
// `many_hosts` says that the ranks may not be on one host.
std::string gpu_of(const nlohmann::json& context);
// `gpu` is the driver's name of the GPU, or empty.
BackendAdvice advise_backend(const std::vector<Measurement>& measurements,
                             const std::string& gpu = "");

}  // namespace howmany::reports
