// SPDX-License-Identifier: Apache-2.0
#include "core/nn/layers.h"
#include "core/nn/models/options.h"

namespace howmany::models {

// Classifies token sequences. The embedding is a large table with little compute, and the rest is
// the opposite. So it can pay to place part of the model on a CPU and part on a GPU.
ModelSpec embedding_rnn(const ModelOptions& options) {
  allow("embedding_rnn", options, {"vocabulary", "length", "width", "hidden", "classes"});
  const int64_t vocabulary = positive(options, "vocabulary", 10'000);
  const int64_t length = positive(options, "length", 32);
  const int64_t width = positive(options, "width", 256);
  const int64_t hidden = positive(options, "hidden", 512);
  const int64_t classes = positive(options, "classes", 1000);
  std::vector<layers::Named> parts;
  parts.push_back({"embedding", layers::embedding(vocabulary, width)});
  parts.push_back({"rnn", layers::rnn(width, hidden)});
  parts.push_back({"fc", layers::linear(hidden, classes)});
  return {.name = "embedding_rnn",
          .layer = layers::sequential(std::move(parts)),
          .sample = {length},
          .input = Dtype::i64,
          .vocabulary = vocabulary,
          .classes = classes};
}

}  // namespace howmany::models
