// Measuring a loader as training sees it: one consumer a rank takes batches as fast as it can, or
// at the pace of a training step, and the ranks meet after every batch as in data-parallel
// training. Call from one thread.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "benches/common/timing.h"
#include "benches/loader/data.h"
#include "core/data/loader.h"

namespace howmany::benches {

struct LoaderResult;

struct LoaderRun {
  int workers = 1, prefetch = 2, ranks = 1;
  int64_t batch = 64;  // of each rank
  double demand = 0;   // samples/s of each rank that training takes; 0: all there is
  bool cold = false;   // every sample once, its pages dropped before
  double budget_s = 3;
  uint64_t seed = 1;
  WorkersAs as = WorkersAs::threads;
  bool in_order = true, pin_memory = false;
  Device to = {};  // where the consumers want them
  Decode decode = Decode::cpu;
  double timeout_s = 60;  // of waiting for a batch
  double start_s = 0;     // of arithmetic before a worker's first batch, as Python's imports
  // Microseconds of arithmetic for each sample beside making it, as Python has; without workers, so
  // many others.
  int64_t more_us = 0;
  std::optional<int64_t> more_alone_us = {};
  // Of that many workers and more, who take the cores' caches from each other; it grows from half
  // as many on.
  std::optional<int64_t> more_crowded_us = {};
  int crowded = 2;
  // Called at the end of the measurement, and after every batch from then on while it returns true;
  // those are not measured.
  std::function<bool(const LoaderResult&)> goes_on = {};
  std::atomic<int64_t>* made = nullptr;  // counts samples, in memory that worker processes share
};

struct LoaderResult {
  Samples blocks;                  // seconds a batch, means of consecutive batches
  std::vector<double> waits;       // of the slowest rank for each batch, after the first window
  int64_t batches = 0;             // timed, of each rank
  double samples_per_s = 0;        // of all ranks together
  double stall_fraction = 0;       // of the time, waiting for a batch
  double stall_half_width = 0;     // of its 95 % interval
  double first_batch_s = 0;        // from making the loader to its first batch
  double cpu_s_per_sample = 0;     // of the whole process, without a paced consumer's own
  double bytes_per_worker = 0;     // growth of the resident memory, its processes' too
  std::vector<double> busy_cores;  // in turn: kept busy by its loader in each stretch
  double resident_before = -1;     // share of the files' pages in memory; -1: not told
  StageTimes stages;
};

LoaderResult run_loader(const LoaderData& data, const LoaderRun& run);

std::vector<pid_t> with_children(pid_t pid);  // that process first

struct LoaderOutcome {
  LoaderResult result;  // all but the rate and the blocks of a short measurement before
  std::string error;    // it failed; the others went on
};
// Several loaders side by side, each in processes of its own that are stopped and go on, for
// `seconds` in all: only one runs at any moment, for a stretch of a tenth of a second (two periods
// of a quota that deals the cores out), there and back. What a shared machine does meanwhile it
// does to all. As many stretches of each, at least three. For CPUs, without a demand, warm; no
// other thread may run.
std::vector<LoaderOutcome> run_in_turn(const LoaderData& data, const std::vector<LoaderRun>& runs,
                                       double seconds);

// Means of `count` equal stretches of consecutive values, the rest of the division left out.
std::vector<double> block_means(const std::vector<double>& values, size_t count);

// Half the width of the 95 % interval of the mean; infinite below two values.
double half_width(const std::vector<double>& values);
double relative_half_width(const std::vector<double>& values);

}  // namespace howmany::benches
