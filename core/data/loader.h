// A Loader yields the same global batches for the same (seed, epoch) whatever the world size or
// worker count; a rank gets its rows of each. Workers are threads, with the core affinity of the
// thread that makes the loader, or forked processes; 0 workers load in the caller. One consumer
// thread per loader.
//
//   Loader loader(dataset, {.global_batch = 64, .workers = 4, .seed = 1});
//   loader.start_epoch(0);
//   while (auto batch = loader.next()) train(*batch);
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/data/dataset.h"

namespace howmany {

// The rows [begin, end) of a batch of n that share `index` of `count` owns: as even as possible,
// the first ones larger.
struct Share {
  int index = 0, count = 1;
  int64_t begin(int64_t n) const { return n / count * index + std::min<int64_t>(index, n % count); }
  int64_t end(int64_t n) const { return Share{index + 1, count}.begin(n); }
};

struct Batch {
  Tensor x, y;
  int64_t global_rows = 0;  // samples in the global batch this is a part of
  int64_t first_row = 0;    // place of row 0 in it
  int64_t number = 0;       // of the epoch
};

// Threads hand a batch over without a copy. Processes survive a sample that kills its worker, and
// cost a copy; they are forked, so make the loader while no other thread holds a lock.
// Pytorch is processes as torch.utils.data.DataLoader has them: what that costs, to measure it.
enum class WorkersAs { threads, processes, pytorch };

// Who makes samples of images in files: the workers, or a GPU that they feed with the bytes. A GPU
// makes nearly the same: it resamples the whole image, where the host has JPEGs reduced in
// decoding.
enum class Decode { cpu, nvjpeg };

// What a worker is told when it starts. The seed is a pure function of the loader's and the index.
struct WorkerInfo {
  int index = 0, count = 0;
  uint64_t seed = 0;
};

struct LoaderOptions {
  int64_t global_batch = 1;  // at least share.count
  int workers = 0;           // at most 1024
  int prefetch = 2;          // batches kept ready per worker
  bool shuffle = true;
  // Else the last batch of an epoch may be smaller. One with fewer rows than shares is dropped
  // anyway, on all ranks alike.
  bool drop_last = false;
  uint64_t seed = 0;
  Share share = {};
  // Where batches end up. On a GPU, the next is copied there beside the work on the one at hand;
  // its memory serves again when that was dropped, so that two are there as long as one is held.
  Device device = {};
  WorkersAs as = WorkersAs::threads;
  // Nvjpeg wants a GPU as the device, that has all batches kept ready, and threads as workers.
  Decode decode = Decode::cpu;
  double timeout_seconds = 0;  // of waiting for a batch; 0: none
  // Else batches come as they are finished, so that a slow one holds up no other: the same batches
  // in any order. Only for a loader that is the only one, since ranks would differ.
  bool in_order = true;
  bool persistent_workers = true;  // else each epoch starts workers anew and ends them
  // Page-locked batches, as those on their way to a GPU are anyway; only `pytorch` has a choice, as
  // there. Where batches stay on the CPU it changes nothing: see notes().
  bool pin_memory = false;
  // Runs first in every worker, thread or process; never when there are 0 workers. What it throws
  // is an Error of the next next(), and the end.
  std::function<void(const WorkerInfo&)> worker_init = {};
};

// Throws std::invalid_argument that says what to do where that cannot be.
void check_decode(Decode decode, Device device);

class Loader {
 public:
  // The dataset must outlive the loader. Throws std::invalid_argument for nonsense options and when
  // an epoch would have no batch.
  Loader(const Dataset& dataset, LoaderOptions options);
  // Stops the workers and waits for them; threads that a timeout found hanging are left behind, and
  // then the dataset must outlive them.
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  int64_t batches_per_epoch() const;
  void start_epoch(int64_t epoch);  // abandons what was left of the previous one
  // The next batch, or nothing at the end of the epoch. Rethrows what loading this batch
  // threw, the sample named; the call after goes on with the batch after. A worker process that
  // dies, or the timeout, is an Error that names the sample each worker was at, and the end: every
  // further call throws it again.
  std::optional<Batch> next();
  std::vector<std::string> notes() const;  // options that change nothing here, and why
  double wait_seconds() const;             // time the caller spent in next() since construction

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace howmany
