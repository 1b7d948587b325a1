// SPDX-License-Identifier: Apache-2.0
// Predicts the rate and stall of a loader at any number of workers from a few short probes.
//
// Rate. Bounded by the workers, the cores that they share, the thread that takes batches, and
//   storage.
// Stall. Replays measured batch times through the dispatch rule of an ordered loader.
// Use. Predictions select measurements; they are never the answer.
// Thread safety. Values only; not tied to any thread.
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
  double caller_s = 0;  // per sample without workers, files in memory
  double sample_s = 0;  // per sample with one worker; its parts:
  double read_s = 0, decode_s = 0, transform_s = 0, rest_s = 0;
  double waiting_s = 0;  // part of read_s: waiting for storage with a free core
  double file_bytes = 0, pixels = 0, sample_bytes = 0;
  std::vector<double> batch_s;  // the batches of one worker, in order
  double handover_s = 0;        // per sample through the loader, if making it is free
  double collate_s = 0;         // per sample: copy into the batch
  double cores = 1;             // cores that ran concurrently
  std::map<int, double> warm_files_per_s, cold_files_per_s;  // by number of threads
  std::string cold_error;                                    // reason if it was not measured
};

// Returns the seconds of a sample that keep a core busy.
double core_s(const LoaderProbes& probes);

// Throws InputError if the probe of one worker or of the hand-over failed.
LoaderProbes probes_from(const BenchFile& file, const std::vector<SampleLine>& samples);

struct LoaderDemand {
  int devices = 1;    // ranks, each with its own loader
  double demand = 0;  // samples/s per device; 0: as many as possible
  int prefetch = 2;   // batches ahead per worker
  int64_t batch = 64;
};

// Returns samples/s of each device's loader. With a demand, one core per device is reserved for its
// training thread.
double predicted_rate(const LoaderProbes& probes, const LoaderDemand& asked, int workers);
// Return bounds on a device's loader in samples/s besides its workers. Infinite if there is no
// bound. Storage has none if its rate still grew at the largest number of threads.
double cores_bound(const LoaderProbes& probes, const LoaderDemand& asked);
double transfer_bound(const LoaderProbes& probes);
double storage_bound(const std::map<int, double>& files_per_s, int devices);

// Returns the share of time that training at the demand waits, 0 to 1. Batch i starts if batch i -
// prefetch * workers was taken and its worker is free. Batches are delivered in order.
double predicted_stall(const LoaderProbes& probes, const LoaderDemand& asked, int workers);
// The same for given batch times. `step` is the training time between two batches, in seconds.
double replayed_stall(const std::vector<double>& batch_s, double step, int workers, int prefetch);

double coefficient_of_batches(const LoaderProbes& probes);

}  // namespace howmany::reports
