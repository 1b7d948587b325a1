// Measured numbers of loader workers, and all facts that the answer follows from. Values only; not
// tied to any thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "reports/results/record.h"
#include "reports/workers/bounds.h"
#include "reports/workers/model.h"
#include "reports/workers/python.h"

namespace howmany::reports {

// One number of workers, measured alone or in turn with others; rates are of all devices together.
struct WorkersPoint {
  int workers = 0;
  Metric rate;  // samples/s as fast as batches come
  // Samples/s of the rounds it took part in, without what the machine's speed did meanwhile.
  std::vector<double> runs;
  std::vector<double> busy;        // cores kept busy in rounds, likewise; empty: not told
  std::optional<double> by_cores;  // samples/s as these tell, where numbers are compared by them
  std::optional<Metric> stall;     // share of the time waiting, when training at the demand
  double wait_p95_s = 0, wait_p99_s = 0, first_batch_s = 0, bytes_per_worker = 0;
  std::string error;  // it failed, if only once
};

// Cores that are kept busy, over the number of workers, where samples wait for storage: each worker
// more leaves the same share less of them idle. Nearly that of the machine repairman's queue
// (Allen, Probability, Statistics and Queueing Theory).
struct WorkersCurve {
  double most = 0, idle = 0, sharpness = 0;
  double dearer = 0;  // what a sample takes of a core, by each worker more; as a share
  double busy(int workers) const;
  double worth(int workers) const;  // samples, in terms of those that a core makes
};

constexpr size_t kFewTurns = 10;  // rounds that tell whether another number of workers gains

struct WorkersFacts {
  LoaderDemand asked;
  std::string demand_from;  // "--samples-per-second", "resnet18 here"; empty: no demand
  double most_stall = 0.01;
  std::string as = "threads";
  std::vector<int> wanted;  // measured anyway; empty: as the search decides
  LoaderProbes probes;
  std::vector<WorkerBound> bounds;
  std::vector<WorkersPoint> points;
  // Samples/s by workers of stretches taken in turn, a round after the other.
  using Round = std::map<int, double>;
  std::vector<Round> rounds;
  std::vector<Round> busy;            // cores, in those that tell
  std::optional<WorkersCurve> curve;  // of these, where they lie on one
  static constexpr double kUsualSpread = 0.03;
  double spread = kUsualSpread;  // of a run's logarithm: as is usual, then as the rounds tell
  double spread_of_busy = kUsualSpread;
  std::optional<double> cold_rate;  // samples/s of all devices, files not in memory
  int cold_workers = 0;
  struct OnGpu {
    int workers = 0;
    double samples_per_s = 0;  // of all devices, in the GPU's memory
    double share = 0;          // of the images, that nvJPEG took
  };
  std::vector<OnGpu> on_gpu;   // decoded by nvJPEG
  std::string gpu, no_nvjpeg;  // as in LoaderLimits
  double start_s = 0.4;        // of a loader, as the last one took
  double files = 0;            // in the folder; 0: none
  double looked_at = 0;        // files of it
  double bad = 0;              // of these, left out
  std::string first_bad;       // "cat/7.jpg: not a JPEG"
  bool undecided = false;      // the time was up before a number that decides was measured
  std::string why_none;        // nothing was measured: why_unmeasurable()
  double busy_elsewhere = 0;   // share of the cores that other programs used; the largest of a run
  PythonCost python;           // part of the probes and points when it was measured
};

// The point of that number of workers; null when it was not measured.
const WorkersPoint* point_at(const WorkersFacts& facts, int workers);
WorkersPoint* point_at(WorkersFacts& facts, int workers);

// Keeps rounds and makes `runs`, `busy`, `by_cores` and rates of all there are: the logarithm of a
// stretch is that of its number, plus the machine's speed in its round, plus luck; by medians, as
// in Tukey's median polish. Points that took part in none are told at the speed that the machine
// now has. Throws std::invalid_argument for an empty round, a number without a point or a rate that
// is not above 0.
void add_rounds(WorkersFacts& facts, const std::vector<WorkersFacts::Round>& rounds,
                const std::vector<WorkersFacts::Round>& busy = {});

}  // namespace howmany::reports
