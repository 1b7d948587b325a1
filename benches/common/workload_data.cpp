#include <fmt/format.h>

#include <algorithm>
#include <iostream>

#include "benches/common/workload.h"
#include "benches/loader/data.h"
#include "core/base/error.h"
#include "core/data/formats.h"

namespace howmany::benches {
namespace {

SampleSpec sample_spec(const ModelSpec& model) {
  SampleSpec spec{
      .x = model.sample, .x_dtype = model.input, .y = model.labels, .vocabulary = model.vocabulary};
  if (model.loss == Loss::mse) {
    spec.y = {model.classes};
    spec.y_dtype = Dtype::f32;
  }
  return spec;
}

OpenedData open_path(const Workload& work, const ModelSpec& model, bool tell) {
  const Shape& x = model.sample;
  const bool square = x.rank() == 3 && x[0] == x[1];
  const bool ids = model.input == Dtype::i64 && x.rank() == 1;
  DataOptions options{.vocabulary = model.vocabulary};
  options.images.on_bad = work.on_bad;
  if (tell) options.images.progress = tell_files(work.data);
  if (square) options.images.size = x[0];
  if (ids) options.sequence = x[0];
  try {
    return open_data(work.data, options);
  } catch (const Error& e) {
    throw std::invalid_argument(e.what());  // the caller chose what to open
  }
}

void check_samples(const Workload& work, const ModelSpec& model, const OpenedData& opened) {
  const SampleSpec wanted = sample_spec(model), found = opened.dataset->spec();
  const auto told = [](const Shape& shape, Dtype dtype) {
    return fmt::format("{} {}", name_of(dtype), shape.str());
  };
  HM_REQUIRE(found.x == wanted.x && found.x_dtype == wanted.x_dtype,
             "--data is {}, samples of {}, but {} eats {}", opened.dataset->describe(),
             told(found.x, found.x_dtype), model.name, told(wanted.x, wanted.x_dtype));
  HM_REQUIRE(found.y == wanted.y && found.y_dtype == wanted.y_dtype,
             "--data is {} with labels of {}, but {} learns {}", opened.dataset->describe(),
             told(found.y, found.y_dtype), model.name, told(wanted.y, wanted.y_dtype));
  HM_REQUIRE(opened.classes <= model.classes, "{} has {} classes, {} tells {} classes apart",
             work.data, opened.classes, model.name, model.classes);
  HM_REQUIRE(opened.dataset->size() >= work.global_batch,
             "{} has {} samples, fewer than one batch of {}", work.data, opened.dataset->size(),
             work.global_batch);
}

DatasetPtr open_files(const Workload& work, const ModelSpec& model, bool tell) {
  OpenedData opened = open_path(work, model, tell);
  if (tell && !opened.bad.empty())
    std::cerr << fmt::format("{}: {} bad images left out, the first is {}: {}\n", work.data,
                             opened.bad.size(), opened.bad[0].path, opened.bad[0].why);
  check_samples(work, model, opened);
  return std::move(opened.dataset);
}

}  // namespace

DatasetPtr open_dataset(const Workload& work, bool tell) {
  const ModelSpec model = make_model(work.model);
  if (!work.synthetic()) return open_files(work, model, tell);
  return synthetic_dataset(sample_spec(model), std::max(work.samples, work.global_batch),
                           model.classes, work.seed);
}

LoaderOptions loader_options(const Workload& work, Share share, Device device) {
  return {.global_batch = work.global_batch,
          .workers = work.workers >= 0  ? work.workers
                     : work.synthetic() ? 0
                                        : 2,
          .drop_last = work.steady,
          .seed = work.seed,
          .share = share,
          .device = device,
          .decode = work.decode};
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

double Trainer::forward_flop(int64_t rows) const {
  std::vector<int64_t> extents = {rows};
  extents.insert(extents.end(), sample_.extents().begin(), sample_.extents().end());
  return shape_->forward_flop(Shape(std::span<const int64_t>(extents)));
}
}  // namespace howmany::benches
