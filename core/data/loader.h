// SPDX-License-Identifier: Apache-2.0
// A Loader returns a rank's rows of each global batch.
//
// Reproducibility. Global batches depend on (seed, epoch), not on world size or worker count.
// Workers. Threads, which inherit the core affinity of the thread that makes the loader, or forked
//   processes. With 0 workers the caller loads.
// Thread safety. One consumer thread per loader.
//
//   Loader loader(dataset, {.global_batch = 64, .workers = 4, .seed = 1});
//   loader.start_epoch(0);
//   while (auto batch = loader.next()) train(*batch);
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "core/data/batch.h"
#include "core/data/dataset.h"
#include "core/data/sampler.h"

namespace howmany {

// threads: a batch is passed to the consumer without a copy.
// processes: the program survives a sample that kills its worker, at the cost of a copy. They are
//   forked, so make the loader while no other thread holds a lock.
enum class WorkersAs { threads, processes };

// Passed to worker_init. The seed depends only on the loader's seed and the index.
struct WorkerInfo {
  int index = 0, count = 0;
  uint64_t seed = 0;
};

struct LoaderOptions {
  int64_t global_batch = 1;  // at least share.count
  int workers = 0;           // at most 1024
  int prefetch = 2;          // batches prefetched per worker
  bool shuffle = true;
  // If false, the last batch of an epoch may be smaller. If it has fewer rows than there are
  // shares, all ranks drop it anyway.
  bool drop_last = false;
  uint64_t seed = 0;
  Share share = {};
  // Chooses and orders this rank's samples instead of `shuffle`, `seed` and `share`, as torch's
  // DataLoader(sampler=...). start_epoch(n) calls set_epoch(n). Must be of the dataset's size; its
  // world must divide global_batch, so each rank gets global_batch / world rows per batch.
  std::optional<DistributedSampler> sampler = {};
  // The device of the batches. On a GPU, the copy of the next batch overlaps the work on the
  // current one. Memory is reused once the caller drops a batch; so there are two batches while one
  // is held.
  Device device = {};
  WorkersAs as = WorkersAs::threads;
  double timeout_seconds = 0;  // for one batch; 0: none
  // If false, batches are returned as they complete, so that a slow one does not delay others.
  // Requires a single share, since ranks would get different orders.
  bool in_order = true;
  bool persistent_workers = true;  // false: each epoch starts new workers and ends them
  // Runs first in every worker; never with 0 workers. If it throws, the next call of next() throws
  // Error, and the loader is finished.
  std::function<void(const WorkerInfo&)> worker_init = {};
};

class Loader {
 public:
  // The dataset must outlive the loader. Throws std::invalid_argument if an option is invalid or an
  // epoch would have no batch.
  Loader(const Dataset& dataset, LoaderOptions options);
  // Stops the workers and waits for them. Threads that hang after a timeout are detached; then the
  // dataset must outlive them.
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  int64_t batches_per_epoch() const;
  void start_epoch(int64_t epoch);  // abandons the rest of the previous epoch
  // Returns the next batch, or nullopt at the end of the epoch. If loading fails, throws Error with
  // the name of the sample; the next call continues with the following batch. If a worker process
  // dies or the timeout expires, throws Error with the current sample of each worker; all later
  // calls throw it again.
  std::optional<Batch> next();
  double wait_seconds() const;  // total time in next()

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace howmany
