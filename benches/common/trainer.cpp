// SPDX-License-Identifier: Apache-2.0
#include "benches/common/trainer.h"

#include <utility>

namespace howmany::benches {

LoaderOptions loader_options(const Workload& work, Share share, Device device) {
  return {.global_batch = work.global_batch,
          .workers = work.workers >= 0  ? work.workers
                     : work.synthetic() ? 0
                                        : 2,
          .drop_last = work.steady,
          .seed = work.seed,
          .share = share,
          .device = device};
}

Trainer::Trainer(const Workload& work, const Dataset& data, Comm& comm, Device device)
    : keep_(work.steady && work.synthetic()) {
  ModelSpec model = make_model(work.model);
  shape_ = model.layer->clone();
  sample_ = model.sample;
  const bool one = !mode_traits(work.mode).over_devices;
  mode_ = make_mode(work.mode, {.model = std::move(model),
                                .seed = work.seed,
                                .comm = &comm,
                                .devices = one ? std::vector{device} : work.devices_of(comm.rank()),
                                .sync = work.sync,
                                .sync_batchnorm = work.sync_batchnorm});
  optimizer_ = make_optimizer(work.optimizer, work.optim);
  loader_ = std::make_unique<Loader>(data, loader_options(work, mode_->share(), device));
}

Batch Trainer::next() {
  if (kept_) return *kept_;
  if (epoch_ < 0) loader_->start_epoch(epoch_ = 0);
  std::optional<Batch> batch = loader_->next();
  while (!batch) {
    loader_->start_epoch(++epoch_);
    batch = loader_->next();
  }
  if (keep_) kept_ = batch;
  return std::move(*batch);
}

StepLoss Trainer::train(const Batch& batch) {
  StepLoss loss = mode_->step(batch);
  optimizer_->step(mode_->params());
  return loss;
}

double Trainer::step_flop(int64_t rows) const {
  std::vector<int64_t> extents = {rows};
  extents.insert(extents.end(), sample_.extents().begin(), sample_.extents().end());
  return howmany::step_flop(*shape_, Shape(std::span<const int64_t>(extents)));
}

}  // namespace howmany::benches
