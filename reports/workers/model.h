// What a few short probes let us predict of a loader: its rate and its stall at any number of
// workers. Three stages bound the rate (the workers, the cores they share, the one thread that
// takes batches), storage a fourth; the stall follows from replaying batch times as they were
// measured through the dispatch rule of an ordered loader. Predictions choose what to measure; they
// are never the answer. Values only; not tied to any thread.
//
//   const double rate = predicted_rate(probes, {.devices = 2, .demand = 900}, 4);
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "reports/results/bench_file.h"

namespace howmany::reports {

struct LoaderProbes {
  double caller_s = 0;  // a sample made without workers, files in memory
  double sample_s = 0;  // by one worker; of which:
  double read_s = 0, decode_s = 0, transform_s = 0, rest_s = 0;
  double waiting_s = 0;  // of read_s: for storage, while others may use the core
  double file_bytes = 0, pixels = 0, sample_bytes = 0;
  std::vector<double> batch_s;  // one worker's batches, one by one
  double handover_s = 0;        // of a sample that costs nothing, through the loader
  double collate_s = 0;         // copying a ready sample
  // A sample takes so much more of a core where `crowded` workers share the cores of half as many,
  // growing from there, as of Python.
  double crowding_s = 0;
  int crowded = 2;
  double cores = 1;                                          // that really ran at once
  std::map<int, double> warm_files_per_s, cold_files_per_s;  // by threads
  std::string cold_error;                                    // why it was not measured
};

// Of making a sample, what keeps a core busy.
double core_s(const LoaderProbes& probes);

// A slower maker of samples, such as Python: its stages take longer alike, the rest what it did.
// Without workers it takes `more_alone_s` longer.
void slow_down(LoaderProbes& probes, double more_s, double more_alone_s);

// Throws InputError when the probes of one worker or of the hand-over failed.
LoaderProbes probes_from(const BenchFile& file, const std::vector<SampleLine>& samples);

struct LoaderDemand {
  int devices = 1;    // ranks, each with a loader of its own
  double demand = 0;  // samples/s that each takes; 0: all there is
  int prefetch = 2;   // batches ready for each worker
  int64_t batch = 64;
};

// Samples/s of each device's loader. With a demand each device's own thread has a core first.
double predicted_rate(const LoaderProbes& probes, const LoaderDemand& asked, int workers);
// What bounds a device's loader besides its workers, samples/s; without the bound it is infinite,
// as of storage that still answered faster to the most threads that asked.
double cores_bound(const LoaderProbes& probes, const LoaderDemand& asked);
double handover_bound(const LoaderProbes& probes);
double storage_bound(const std::map<int, double>& files_per_s, int devices);

// The share of the time that training at the demand waits, 0 to 1. Batch i is begun when batch
// i - prefetch * workers is taken and its worker is free; it is handed over in order.
double predicted_stall(const LoaderProbes& probes, const LoaderDemand& asked, int workers);
// The same for given seconds of making each batch; `step` seconds of training between two.
double replayed_stall(const std::vector<double>& batch_s, double step, int workers, int prefetch);

double coefficient_of_batches(const LoaderProbes& probes);

}  // namespace howmany::reports
