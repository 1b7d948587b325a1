// SPDX-License-Identifier: Apache-2.0
// Measures a loader as training uses it. Each rank has one consumer, which takes batches as fast as
// it can or at the rate of a training step. The ranks synchronize after every batch as in
// data-parallel training. Call from one thread.
#pragma once

#include <vector>

#include "benches/common/timing.h"
#include "benches/loader/data.h"
#include "core/data/image_folder.h"
#include "core/data/loader.h"

namespace howmany::benches {

struct LoaderResult;

struct LoaderRun {
  int workers = 1, prefetch = 2, ranks = 1;
  int64_t batch = 64;  // per rank
  double demand = 0;   // samples/s that the training of each rank consumes; 0: no limit
  bool cold = false;   // every sample once; its pages are dropped before
  double budget_s = 3;
  uint64_t seed = 1;
  WorkersAs as = WorkersAs::threads;
  Device to = {};  // device of the batches
};

struct LoaderResult {
  Samples blocks;               // seconds per batch, means of consecutive batches
  std::vector<double> waits;    // of the slowest rank per batch, after the first window
  int64_t batches = 0;          // timed, per rank
  double samples_per_s = 0;     // of all ranks together
  double stall_fraction = 0;    // share of the time spent waiting for a batch
  double first_batch_s = 0;     // from the construction of the loader to its first batch
  double cpu_s_per_sample = 0;  // of the whole process, without a paced consumer's spinning
  double bytes_per_worker = 0;  // growth of resident memory, including its processes
  double resident_before = -1;  // share of the files' pages in memory; -1: unknown
  StageTimes stages;
};

LoaderResult run_loader(const LoaderData& data, const LoaderRun& run);

// Returns the means of `count` equal runs of consecutive values. The remainder of the division is
// left out.
std::vector<double> block_means(const std::vector<double>& values, size_t count);

// Returns half the width of the 95 % interval of the mean relative to it, or infinity for fewer
// than two values.
double relative_half_width(const std::vector<double>& values);

}  // namespace howmany::benches
