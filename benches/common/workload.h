// A training run as the flags of speedup_bench and howmany-train describe it, and the part of one
// rank. A Trainer belongs to one thread. The ranks of a process share a Dataset.
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
  std::vector<Device> devices;  // assigned to the ranks in order
  int64_t global_batch = 0;
  std::string data = "synthetic";  // or a path for open_data()
  int64_t samples = 0;             // of a synthetic data set
  OnBadImage on_bad = OnBadImage::refuse;
  int workers = -1;  // loader workers per rank; -1: two for files, none for synthetic data
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
  int ranks_per_host = 0;  // if there are several hosts, which have equal devices; 0: one host
  bool own_cores = false;  // the launcher bound each rank to its own cores, so all are cpu:0
  bool own_gpus = false;   // each rank sees only its own GPU, so all are cuda:0
  // The device of this rank, if it depends on the local rank. Launchers may assign ranks to hosts
  // round-robin.
  std::optional<Device> own_device;

  bool synthetic() const { return data.empty() || data == "synthetic"; }
  int count() const { return static_cast<int>(devices.size()); }
  int ranks() const { return ranks_of(mode, count()); }
  std::vector<Device> devices_of(int rank) const;
  Device device_of(int rank) const;  // the first device of this rank
  // True if the ranks are separate processes, which a launcher or supervise() must start.
  bool over_processes() const;
  // The devices that share one set of cores.
  std::vector<Device> devices_together() const;
};

// Adds the flags of both programs: --data, --workers, --on-bad-image, --decode, --kernels,
// --precision, --optimizer and its numbers, --seed, --sync, --bucket-bytes, --sync-batchnorm,
// --cores-per-device, --timeout, --oversubscribe.
void add_flags(CLI::App& app, Workload& work);
// Throws std::invalid_argument if:
// * a name is unknown (the message has the nearest known one),
// * devices are missing or too many,
// * the batch has fewer rows than there are devices,
// * the batch, or the order of synthetic samples, does not fit into the memory.
void check(const Workload& work);
// Rejoins the modes of a list that was split at commas with their options. {"single",
// "pipeline:micro_batches=8", "schedule=gpipe"} become two modes.
std::vector<std::string> join_options(const std::vector<std::string>& pieces);
// Returns the devices of "cpu:0,cpu:1", or the first `count` cpu devices if the list is empty.
std::vector<Device> devices_from(const std::string& list, int count);
// Returns true if a run without --devices uses GPUs: there is a GPU, and the kernels are not CPU
// kernels.
bool means_gpus(const Workload& work);
bool all_gpus(const std::vector<Device>& devices);
// Returns the listed devices. If the list has the devices of one host, repeats them for each host.
std::vector<Device> devices_given(const std::string& list, const Place& place);
// Sets one device per rank of `place`: the listed ones, or the GPUs or cpu devices of each host by
// local rank, or the own device that Slurm bound each task to. Throws std::invalid_argument if
// there are fewer GPUs than ranks.
void place_devices(Workload& work, const std::string& list, const Place& place, bool gpus);
// Returns the index of this rank's GPU, on which it communicates. Returns -1 if it has none, or if
// one process drives all GPUs.
int gpu_of(const Workload& work, const Place& place);
// Returns the flags of its results: "oversubscribed"; "rehearsal" if ranks share a GPU; "short of
// cores" if there are fewer cores than GPUs that they feed.
std::vector<std::string> marks_of(const Workload& work);
// The backend that `auto` selects, and the reason.
struct Choice {
  std::string name, because;
};
Choice choose_backend(const Workload& work, const Place& place);

// Throws std::invalid_argument if the data do not fit the workload. If `tell`, prints one line on
// stderr about skipped images.
DatasetPtr open_dataset(const Workload& work, bool tell = true);

// One rank: its replica or part of the model, its rows of every batch, its optimizer.
class Trainer {
 public:
  // `device` is the first device of this rank.
  Trainer(const Workload& work, const Dataset& data, Comm& comm, Device device);

  // Returns this rank's rows of the next batch. Starts a new epoch at the end of one.
  Batch next();
  // Runs the mode and the optimizer. To keep a GPU busy, read each loss one step late; the host is
  // then at most one step ahead.
  StepLoss train(const Batch& batch);
  Mode& mode() { return *mode_; }
  Loader& loader() { return *loader_; }
  double forward_flop(int64_t rows) const;

 private:
  std::unique_ptr<Mode> mode_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<Loader> loader_;
  LayerPtr shape_;  // never materialized: used only for its cost
  Shape sample_;
  int64_t epoch_ = -1;  // next() starts the first
  bool keep_;
  std::optional<Batch> kept_;
};

// --decode cpu or nvjpeg.
void add_decode(CLI::App& app, Decode& decode);

// Returns the options of the loader that feeds `share` of this workload.
LoaderOptions loader_options(const Workload& work, Share share, Device device);

// Selects the kernels of --kernels on this thread until it is destroyed.
class KernelScope {
 public:
  explicit KernelScope(const std::string& kernels) {
    if (!kernels.empty()) scope_.emplace(backend_named(kernels));
  }

 private:
  std::optional<BackendScope> scope_;
};

}  // namespace howmany::benches
