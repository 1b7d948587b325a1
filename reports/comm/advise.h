// From measured collectives to one answer: which backend, from which size on, and how near it comes
// to what this machine can move at all. Failed cells never win; where intervals overlap the answer
// says that it is not certain. Values only; not tied to any thread.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "reports/comm/curve.h"
#include "reports/results/record.h"

namespace howmany::reports {

// How far the sizes go that every backend was measured at.
struct Reach {
  double to = 0;
  bool whole = true;    // no size that was asked for is missing
  bool beyond = false;  // one above `to` is
};

// One operation on one number of ranks over all backends.
struct Contest {
  std::string op, dtype;
  int devices = 2;
  std::vector<NamedCurve> curves = {};  // of calls with a barrier before each
  std::vector<NamedCurve> sweep = {};   // these without what only a model's buckets asked for
  std::set<std::string> tried = {};     // every backend of the sweep, those without a time too
  std::map<std::string, AlphaBeta> fits = {};
  std::vector<BestRange> best = {};  // of the sweep
  Reach reach = {};
};

// What this machine itself can move, measured in the same run; NaN when it was not.
struct Ceilings {
  double copy_one_thread = 0, copy_all_threads = 0, loopback_tcp = 0;  // bytes/s
};
// How near a backend comes to the ceiling over its own road.
struct RoadVerdict {
  std::string backend, op, road;  // "loopback TCP"
  double bytes = 0, bytes_per_s = 0, ceiling = 0;
  double ratio() const { return bytes_per_s / ceiling; }
};

struct ModelTime {
  std::string model, dtype;
  std::vector<double> bytes = {};                // its gradient buckets
  std::map<std::string, CurvePoint> times = {};  // by backend: all of them, one after the other
  std::map<std::string, int> missing = {};  // how many of them have no time, where some have none
  std::set<std::string> failed = {};        // backends, at one of them
};

// Against what others published for the same hardware.
struct ReferenceLine {
  std::string op, verdict, system, source;  // verdict: "normal", "low", "high"
  double bytes = 0, bytes_per_s = 0, reference = 0;
};

// The same library under torch.distributed and under howmany; ratios are torch's time over ours.
struct TorchGap {
  std::string backend, torch;     // "gloo", "torch:gloo"
  double ratio = 1;               // geometric mean over `sizes` common sizes
  double largest = 1, bytes = 0;  // the ratio furthest from 1, and its size
  int sizes = 0;
};

struct BackendAdvice {
  std::optional<std::string> recommended;
  bool certain = true, disturbed = false;  // disturbed: by other programs, see disturbance.h
  std::string because;                     // one sentence
  std::vector<std::string> notes;
  std::vector<Contest> contests;
  std::vector<ModelTime> models;
  Ceilings ceilings;
  std::vector<RoadVerdict> verdicts;
  std::vector<TorchGap> torch;            // empty without rows of torch
  std::vector<ReferenceLine> references;  // empty where the table does not speak of this machine
};

// The member `gpu` of the context of a run, as the driver names it; empty without one, and where
// the member `many_hosts` tells that its ranks are not known to be on one host.
std::string gpu_of(const nlohmann::json& context);
// `gpu`: as the driver names it; empty without one.
BackendAdvice advise_backend(const std::vector<Measurement>& measurements,
                             const std::string& gpu = "");

// The member `backend` of the summary's answer.
nlohmann::ordered_json to_json(const BackendAdvice& advice,
                               const std::vector<Measurement>& measurements);

}  // namespace howmany::reports
