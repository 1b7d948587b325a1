// SPDX-License-Identifier: Apache-2.0
// The short probes behind `howmany workers`: the cost of one worker and its stages, the overhead of
// the loader, the scaling of file reads, and the number of cores that really run concurrently. Each
// returns the samples and counters of one benchmark. Call from one thread.
#pragma once

#include <map>
#include <string>

#include "benches/common/timing.h"
#include "benches/loader/data.h"
#include "core/data/loader.h"

namespace howmany::benches {

struct Probed {
  Samples samples;
  std::map<std::string, double> counters;
};

// Batches made in the calling thread. Samples are seconds per batch. Counters are seconds per
// sample for reading, decoding, transforming (which includes collating) and the rest. Counter cv is
// that of the batches.
Probed probe_solo(const LoaderData& data, int64_t batch, double budget_s);
// The same batches made by one worker of this kind. They take longer by the cost of memory shared
// between processes, and the consumer's thread runs concurrently.
Probed probe_worker(const LoaderData& data, int64_t batch, WorkersAs as, double budget_s);
// Batches of samples without cost, made by such workers. Seconds per batch are the loader's
// overhead, which no number of workers reduces.
Probed probe_handover(const LoaderData& data, int64_t batch, int workers, WorkersAs as,
                      double budget_s);
// Copies ready samples into a fresh batch. Returns seconds per batch, and bytes/s.
Probed probe_collate(const LoaderData& data, int64_t batch, double budget_s);
// Reads whole files with `threads` threads, each file once if cold. Throws Error if the pages
// cannot be dropped.
Probed probe_read(const LoaderData& data, int threads, bool cold, double budget_s);
// Runs the same arithmetic in `threads` threads. Counter cores is the total work divided by the
// work of one thread alone in the same time, for instance 1.5 under a quota of 1.5.
Probed probe_cores(int threads, double budget_s);

}  // namespace howmany::benches
