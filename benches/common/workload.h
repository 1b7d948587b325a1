// A training run as the flags of speedup_bench and howmany-train describe it, and one rank's part
// in it. A Trainer belongs to one thread; a Dataset is shared by the ranks of a process.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/backends/backend.h"
#include "core/data/dataset.h"
#include "core/data/loader.h"
#include "core/nn/optim.h"
#include "core/tensor/precision.h"
#include "parallel/launch.h"
#include "parallel/mode.h"

namespace CLI {
class App;
}

namespace howmany::benches {

struct Workload {
  std::string model = "mlp", mode = "single", backend = "local";
  std::vector<Device> devices;  // dealt out to the ranks in order
  int64_t global_batch = 0;
  std::string data = "synthetic";  // or what open_data opens
  int64_t samples = 0;             // of a synthetic set
  OnBadImage on_bad = OnBadImage::refuse;
  int workers = -1;  // of the loader in each rank; -1: two for files, none for synthetic data
  Decode decode = Decode::cpu;
  std::string kernels;  // empty: the best built in
  Precision precision = Precision::f32;
  std::string optimizer = "sgd";
  OptimOptions optim;
  GradSyncOptions sync;
  bool sync_batchnorm = false;
  bool steady = false;  // every batch is full; synthetic data is one batch that stays in memory
  uint64_t seed = 1;
  int cores_per_device = 1;
  double timeout_seconds = 30;  // of a collective
  bool oversubscribe = false;
  int ranks_per_host = 0;  // of several hosts, whose devices are those again; 0: one host
  bool own_cores = false;  // the launcher gave each rank cores of its own, so all are on cpu:0
  bool own_gpus = false;   // or shows each its own GPU alone, so all are on cuda:0
  // Of this rank, where it goes by the host's own count of ranks: launchers deal them out in turns.
  std::optional<Device> own_device;

  bool synthetic() const { return data.empty() || data == "synthetic"; }
  int count() const { return static_cast<int>(devices.size()); }
  int ranks() const { return ranks_of(mode, count()); }
  std::vector<Device> devices_of(int rank) const;
  Device device_of(int rank) const;  // the first of this rank's
  // Ranks are other processes, so somebody has to start them.
  bool over_processes() const;
  // The devices that share one set of cores.
  std::vector<Device> devices_together() const;
};

// The flags both programs take: --data, --workers, --on-bad-image, --decode, --kernels,
// --precision, --optimizer and its numbers, --seed, --sync, --bucket-bytes, --sync-batchnorm,
// --cores-per-device, --timeout, --oversubscribe.
void add_flags(CLI::App& app, Workload& work);
// Throws std::invalid_argument: unknown names (the nearest suggested), devices that are not there
// or too many, a batch smaller than the devices or larger than the memory here, more synthetic
// samples than that holds the order of.
void check(const Workload& work);
// Modes of a list that was split at commas, with their options together again: {"single",
// "pipeline:micro_batches=8", "schedule=gpipe"} are two.
std::vector<std::string> join_options(const std::vector<std::string>& pieces);
// "cpu:0,cpu:1" as given, or the first `count` cpu devices.
std::vector<Device> devices_from(const std::string& list, int count);
// Whether GPUs are meant where no devices are given: some are here, and the kernels are not the
// CPU's.
bool means_gpus(const Workload& work);
bool all_gpus(const std::vector<Device>& devices);
// As given for all ranks of `place`, or for those of one host, which then each host has.
std::vector<Device> devices_given(const std::string& list, const Place& place);
// The devices of a workload over the ranks of `place`, one each: as given, or the GPUs or cpu
// devices of each host by local rank, or what Slurm gave each task alone. Throws
// std::invalid_argument where there are fewer GPUs than ranks.
void place_devices(Workload& work, const std::string& list, const Place& place, bool gpus);
// The GPU of this rank, where its exchanges are; -1: none, or one process has them all.
int gpu_of(const Workload& work, const Place& place);
// What its results are marked with: "oversubscribed", "rehearsal" where ranks share a GPU, "short
// of cores" where there are more GPUs than cores to feed them.
std::vector<std::string> marks_of(const Workload& work);
// What `auto` stands for, and why: "gloo".
struct Choice {
  std::string name, because;
};
Choice choose_backend(const Workload& work, const Place& place);

// Throws std::invalid_argument when the folder is not what the workload needs. With `tell` images
// that are left out become a line on stderr.
DatasetPtr open_dataset(const Workload& work, bool tell = true);

// One rank: its copy of the model, its rows of every batch, its optimizer.
class Trainer {
 public:
  // `device` is the first of this rank's.
  Trainer(const Workload& work, const Dataset& data, Comm& comm, Device device);

  // This rank's rows of the next batch; a new epoch starts at the end of one.
  Batch next();
  // Mode and optimizer. Who reads each loss one step late keeps a GPU busy, and is at most one step
  // ahead of it.
  StepLoss train(const Batch& batch);
  Mode& mode() { return *mode_; }
  Loader& loader() { return *loader_; }
  double forward_flop(int64_t rows) const;

 private:
  std::unique_ptr<Mode> mode_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<Loader> loader_;
  LayerPtr shape_;  // never materialized: only asked for its cost
  Shape sample_;
  int64_t epoch_ = -1;  // next() starts the first
  bool keep_;
  std::optional<Batch> kept_;
};

// --decode cpu or nvjpeg.
void add_decode(CLI::App& app, Decode& decode);

// The options of the loader that feeds `share` of this workload.
LoaderOptions loader_options(const Workload& work, Share share, Device device);

// Kernels of this thread as chosen by --kernels, for as long as it lives.
class KernelScope {
 public:
  explicit KernelScope(const std::string& kernels) {
    if (!kernels.empty()) scope_.emplace(backend_named(kernels));
  }

 private:
  std::optional<BackendScope> scope_;
};

}  // namespace howmany::benches
