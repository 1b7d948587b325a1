// SPDX-License-Identifier: Apache-2.0
// A training run as the flags of speedup_bench and howmany-train describe it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/data/image_folder.h"
#include "core/data/loader.h"
#include "core/nn/optim.h"
#include "core/tensor/precision.h"
#include "parallel/launch/launch.h"
#include "parallel/modes/mode.h"

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
  int workers = -1;     // loader workers per rank; -1: two for files, none for synthetic data
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
  bool uses_gpu() const;  // on any of its devices
  std::vector<Device> devices_of(int rank) const;
  Device device_of(int rank) const;  // the first device of this rank
  // True if the ranks are separate processes, which a launcher or supervise() must start.
  bool over_processes() const;
  // The devices that share one set of cores.
  std::vector<Device> devices_together() const;
};

// Adds the flags of both programs: --data, --workers, --on-bad-image, --kernels,
// --precision, --optimizer and its numbers, --seed, --sync, --sync-batchnorm,
// --cores-per-device, --timeout, --oversubscribe.
void add_flags(CLI::App& app, Workload& work);
// Throws std::invalid_argument if:
// * a name is unknown (the message has the nearest known one),
// * devices are missing or too many,
// * the batch has fewer rows than there are devices,
// * the batch, or the order of synthetic samples, does not fit into the memory.
void check(const Workload& work);
bool can_divide(const Workload& work);  // false if the mode cannot divide the model

}  // namespace howmany::benches
