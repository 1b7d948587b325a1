// SPDX-License-Identifier: Apache-2.0
// Small models, batches that depend on the step number, and a few steps of SGD, for the tests of
// modes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/nn/layers.h"
#include "core/nn/optim.h"
#include "core/nn/units.h"
#include "parallel/modes/mode.h"
#include "tests/support/tensors.h"

namespace howmany::testing_support {

inline const std::string kEmbeddingRnn =
    "embedding_rnn:vocabulary=11,length=5,width=3,hidden=7,classes=4";

// With GPT-2's own small weights, some gradients would be too small to compare.
inline const std::string kGpt2 =
    "gpt2:width=8,layers=1,heads=2,length=5,vocabulary=11,deviation=0.5";

inline const std::string kTiedGpt2 = kGpt2 + ",tied=yes";

inline const std::string kLlama =
    "llama:width=8,layers=1,heads=4,kv_heads=2,hidden=6,length=5,vocabulary=11,deviation=0.5";

inline ModelSpec conv_model() {
  return {.name = "conv",
          .layer = layers::sequential(layers::conv2d(2, 4, {3, 1, 1}), layers::relu(),
                                      layers::max_pool({2, 2, 0}), layers::flatten(),
                                      layers::linear(36, 5)),
          .sample = {6, 6, 2},
          .classes = 5};
}

inline ModelSpec dropout_model() {
  return {
      .name = "dropout",
      .layer = layers::sequential(layers::linear(8, 16, Activation::gelu), layers::dropout(0.3),
                                  layers::linear(16, 11, Activation::relu), layers::linear(11, 4)),
      .sample = {8},
      .classes = 4};
}

inline ModelSpec batchnorm_model() {
  return {
      .name = "bn",
      .layer = layers::sequential(layers::linear(6, 8), layers::batchnorm(8, Activation::relu),
                                  layers::linear(8, 7), layers::batchnorm(7), layers::linear(7, 3)),
      .sample = {6},
      .classes = 3};
}

inline ModelSpec mse_model() {
  return {.name = "mse",
          .layer = layers::linear(10, 2),
          .sample = {10},
          .classes = 2,
          .loss = Loss::mse};
}

inline ModelSpec model_named(const std::string& name) {
  if (name == "mse") return mse_model();
  if (name == "conv") return conv_model();
  if (name == "dropout") return dropout_model();
  if (name == "batchnorm") return batchnorm_model();
  return make_model(name);
}

// Models of one unit and of several, with odd sizes, ids as inputs, masks that depend on the row,
// and a label per token.
inline const std::vector<std::string> kModels = {"mse",  "simple_net", "mlp:sizes=13-17-9-7-5",
                                                 "conv", "dropout",    kEmbeddingRnn,
                                                 kGpt2,  kTiedGpt2,    kLlama};

// Divisible, not divisible by 3 or 4, and a short last batch.
inline const std::vector<int64_t> kBatches = {12, 10, 12, 10, 7};

inline Batch global_batch(const ModelSpec& model, int64_t rows, int step) {
  Draw draw(1000 + static_cast<uint64_t>(step));
  const Shape x = with_rows_in_front(rows, model.sample);
  Batch batch;
  batch.x = model.input == Dtype::i64 ? draw.ids(x, model.vocabulary) : draw.normal(x);
  batch.y = model.loss == Loss::mse
                ? draw.normal({rows, model.classes})
                : draw.ids(with_rows_in_front(rows, model.labels), model.classes);
  batch.global_rows = rows;
  return batch;
}

inline Batch rows_of(const Batch& whole, Share share) {
  const int64_t begin = share.begin(whole.global_rows), end = share.end(whole.global_rows);
  return {whole.x.rows(begin, end), whole.y.rows(begin, end), whole.global_rows, begin};
}

struct Curve {
  std::vector<double> losses;
  std::map<std::string, Tensor> values;  // of rank 0
};

inline Curve train(Mode& mode, const std::string& model_name) {
  const ModelSpec model = model_named(model_name);
  const auto optimizer = make_optimizer("sgd", {.lr = 0.1, .momentum = 0.9});
  Curve run;
  for (size_t step = 0; step < kBatches.size(); ++step) {
    const Batch whole = global_batch(model, kBatches[step], static_cast<int>(step));
    const StepLoss loss = mode.step(rows_of(whole, mode.share()));
    optimizer->step(mode.params());
    run.losses.push_back(loss.value());
  }
  run.values = mode.gather();
  return run;
}

inline std::vector<Device> cpus(int count) {
  std::vector<Device> devices;
  for (int i = 0; i < count; ++i) devices.push_back({DeviceType::cpu, i});
  return devices;
}

}  // namespace howmany::testing_support
