// The short probes behind `howmany workers`: what one worker takes and where, what the loader
// itself costs, how reading files scales, and how many cores really run at once. Each makes the
// samples and counters of one benchmark. Call from one thread.
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
  std::vector<double> busy_cores;  // as in LoaderResult
};

// A batch made in the calling thread: seconds of each, and of a sample reading, decoding,
// transforming (into the batch: collating is part of it) and the rest. Counter cv is of batches.
Probed probe_solo(const LoaderData& data, int64_t batch, double budget_s);
// The same made by one such worker: its batches take longer by what memory that processes share
// costs, and the consumer's thread is beside it.
Probed probe_worker(const LoaderData& data, int64_t batch, WorkersAs as, double budget_s);
// Batches of samples that cost nothing, through such workers: seconds of a batch are what the
// loader costs, the stage that no worker count makes faster.
Probed probe_handover(const LoaderData& data, int64_t batch, int workers, WorkersAs as,
                      double budget_s);
// Copying ready samples into a fresh batch: seconds of a batch, and bytes/s.
Probed probe_collate(const LoaderData& data, int64_t batch, double budget_s);
// Whole files read by `threads` at once, each file once when cold. Throws Error when the pages
// cannot be dropped.
Probed probe_read(const LoaderData& data, int threads, bool cold, double budget_s);
// The same arithmetic in `threads` at once: counter cores is how many cores' worth was done in a
// thread's time alone, 1.5 under a quota of 1.5.
Probed probe_cores(int threads, double budget_s);

}  // namespace howmany::benches
