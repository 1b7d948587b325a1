// SPDX-License-Identifier: Apache-2.0
// Measured numbers of loader workers, and all facts that determine the answer. Values only; not
// tied to any thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "reports/results/record.h"
#include "reports/workers/bounds.h"
#include "reports/workers/model.h"

namespace howmany::reports {

// One number of workers, measured alone or interleaved with others. Rates are sums over all
// devices.
struct WorkersPoint {
  int workers = 0;
  Metric rate;  // samples/s, unpaced
  // Samples/s in its rounds, corrected for the machine's speed.
  std::vector<double> runs;
  std::vector<double> busy;        // busy cores in rounds, likewise; empty: unknown
  std::optional<double> by_cores;  // samples/s from busy cores, if these decide
  std::optional<Metric> stall;     // share of time waiting, if training at the demand
  double wait_p95_s = 0, wait_p99_s = 0, first_batch_s = 0, bytes_per_worker = 0;
  std::string error;  // reason if any run failed
};

// Busy cores over the number of workers if samples wait for storage: each worker reduces the idle
// part by the same factor. An approximation of the machine repairman's queue (Allen, Probability,
// Statistics and Queueing Theory).
struct WorkersCurve {
  double most = 0, idle = 0, sharpness = 0;
  double dearer = 0;  // relative growth of core seconds per sample per worker
  double busy(int workers) const;
  double worth(int workers) const;  // samples, in units of one core's samples
};

constexpr size_t kFewTurns = 10;  // rounds needed to see whether another number gains

struct WorkersFacts {
  LoaderDemand asked;
  std::string demand_from;  // "--samples-per-second", "resnet18 here"; empty: no demand
  double most_stall = 0.01;
  std::string as = "threads";
  std::vector<int> wanted;  // measured in any case; empty: the search decides
  LoaderProbes probes;
  std::vector<WorkerBound> bounds;
  std::vector<WorkersPoint> points;
  // Samples/s by workers. A round has one time slice per number.
  using Round = std::map<int, double>;
  std::vector<Round> rounds;
  std::vector<Round> busy;            // busy cores, for the rounds that have them
  std::optional<WorkersCurve> curve;  // curve of `busy` if it fits
  static constexpr double kUsualSpread = 0.03;
  double spread = kUsualSpread;  // of a run's logarithm: a prior, then estimated from rounds
  double spread_of_busy = kUsualSpread;
  std::optional<double> cold_rate;  // samples/s of all devices, files not in memory
  int cold_workers = 0;
  struct OnGpu {
    int workers = 0;
    double samples_per_s = 0;  // of all devices, into GPU memory
    double share = 0;          // share of the images decoded by nvJPEG
  };
  std::vector<OnGpu> on_gpu;   // decoded by nvJPEG
  std::string gpu, no_nvjpeg;  // see LoaderLimits
  double start_s = 0.4;        // start of the last loader, seconds
  double files = 0;            // number of files; 0: none
  double looked_at = 0;        // number of files checked
  double bad = 0;              // unreadable files among these
  std::string first_bad;       // "cat/7.jpg: not a JPEG"
  bool undecided = false;      // the time ended before a deciding number was measured
  std::string why_none;        // reason if nothing was measured: why_unmeasurable()
  double busy_elsewhere = 0;   // share of the cores used by other programs, largest of a run
};

// Returns the point of that number, or nullptr if it was not measured.
const WorkersPoint* point_at(const WorkersFacts& facts, int workers);
WorkersPoint* point_at(WorkersFacts& facts, int workers);

// Adds rounds and recomputes `runs`, `busy`, `by_cores` and rates from all rounds.
//
// Method. The logarithm of a time slice is the sum of its number's rate, its round's speed, and
//   noise. Fitted by Tukey's median polish.
// Other points. Points without rounds are rescaled to the current speed of the machine.
// Failure. Throws std::invalid_argument if a round is empty, a number has no point, or a rate is
//   not above 0.
void add_rounds(WorkersFacts& facts, const std::vector<WorkersFacts::Round>& rounds,
                const std::vector<WorkersFacts::Round>& busy = {});

}  // namespace howmany::reports
