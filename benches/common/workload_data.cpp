// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iostream>

#include "benches/common/trainer.h"
#include "benches/loader/data.h"
#include "core/base/error.h"
#include "core/base/text/table.h"
#include "core/data/fitted_dataset.h"
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

std::string notes_of(const OpenedData& opened) {
  return fmt::format("{}", fmt::join(opened.notes, "; "));
}

void check_samples(const Workload& work, const ModelSpec& model, const OpenedData& opened) {
  const SampleSpec wanted = sample_spec(model), found = opened.dataset->spec();
  const auto described = [](const Shape& shape, Dtype dtype) {
    return fmt::format("{} {}", name_of(dtype), shape.str());
  };
  HM_REQUIRE(found.x == wanted.x && found.x_dtype == wanted.x_dtype,
             "--data is {}, samples of {}, but {} expects {}: save them in this shape, or change "
             "the options of the model",
             opened.dataset->describe(), described(found.x, found.x_dtype), model.name,
             described(wanted.x, wanted.x_dtype));
  HM_REQUIRE(found.y.numel() > 0, "--data is {}, but {} learns from labels: give {}{}",
             opened.dataset->describe(), model.name, data_formats_help(opened.format),
             opened.notes.empty() ? "" : fmt::format(" ({})", notes_of(opened)));
  HM_REQUIRE(found.y == wanted.y && found.y_dtype == wanted.y_dtype,
             "--data is {} with labels of {}, but {} expects {}", opened.dataset->describe(),
             described(found.y, found.y_dtype), model.name, described(wanted.y, wanted.y_dtype));
  HM_REQUIRE(opened.classes <= model.classes, "{} has {} classes, {} has {} outputs", work.data,
             opened.classes, model.name, model.classes);
  HM_REQUIRE(opened.dataset->size() >= work.global_batch,
             "{} has {} samples, fewer than one batch of {}", work.data, opened.dataset->size(),
             work.global_batch);
}

DatasetPtr open_files(const Workload& work, const ModelSpec& model, bool tell) {
  OpenedData opened = open_path(work, model, tell);
  if (tell && !opened.bad.empty())
    std::cerr << fmt::format("{}: {} bad images left out, the first is {}: {}\n",
                             printable(work.data), opened.bad.size(), printable(opened.bad[0].path),
                             opened.bad[0].why);
  const Dataset* const stored = opened.dataset.get();
  opened.dataset = fit_samples(std::move(opened.dataset), sample_spec(model));
  if (tell && opened.dataset.get() != stored)
    std::cerr << fmt::format("samples are converted: {}\n", printable(opened.dataset->describe()));
  check_samples(work, model, opened);
  if (tell && !opened.notes.empty())
    std::cerr << fmt::format("{}: {}\n", printable(work.data), printable(notes_of(opened)));
  return std::move(opened.dataset);
}

}  // namespace

DatasetPtr open_dataset(const Workload& work, bool tell) {
  const ModelSpec model = make_model(work.model);
  if (!work.synthetic()) return open_files(work, model, tell);
  return synthetic_dataset(sample_spec(model), std::max(work.samples, work.global_batch),
                           model.classes, work.seed);
}

}  // namespace howmany::benches
