// SPDX-License-Identifier: Apache-2.0
// Chooses a communication backend from measured collectives, by size. Failed cells never win. If
// intervals overlap, the answer is uncertain. Values only; not tied to any thread.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "reports/comm/crossing.h"
#include "reports/results/record.h"

namespace howmany::reports {

// One operation on one number of ranks, over all backends.
struct OperationResults {
  std::string op, dtype;
  int devices = 2;
  std::vector<NamedCurve> curves = {};  // of calls with a barrier before each
  std::vector<NamedCurve> sweep = {};   // `curves` without sizes that only a model's buckets use
  std::set<std::string> tried = {};     // all backends of the sweep, including those without a time
  std::map<std::string, AlphaBeta> fits = {};
  std::optional<Crossing> crossing = {};  // of the sweep
};

// Ceilings of this machine, measured in the same run. NaN if not measured.
struct Ceilings {
  double copy_one_thread = 0, copy_all_threads = 0, loopback_tcp = 0;  // bytes/s
};
// The gradients of a model's step, or of the user's script.
struct ModelTime {
  std::string model, dtype;
  std::vector<double> bytes = {};                // sizes of its gradient buckets
  std::map<std::string, CurvePoint> times = {};  // by backend: of all buckets in sequence
  std::map<std::string, int> missing = {};       // number of buckets without a time, if any
  std::set<std::string> failed = {};             // backends that failed at a bucket
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
};

BackendAdvice advise_backend(const std::vector<Measurement>& measurements);

}  // namespace howmany::reports
