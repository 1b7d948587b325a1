// SPDX-License-Identifier: Apache-2.0
// The part of one rank in the training run that a Workload describes.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "benches/common/workload.h"
#include "core/backends/selection.h"
#include "core/data/loader.h"

namespace howmany::benches {

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
  double step_flop(int64_t rows) const;

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
