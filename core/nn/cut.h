// SPDX-License-Identifier: Apache-2.0
// Tensor parallelism: a chain of layers of which each rank computes a part (Shoeybi et al.,
// "Megatron-LM", 2019).
//
//   linear (outputs) -> elementwise layers or attention (between) -> linear (inputs)
//
//   embedding (vocabulary), and a head that makes the logits of the same tokens (outputs)
//
// The first linear layer makes a part of its outputs, and sums the gradient of its input over the
// ranks. The last one takes that part as input, and sums its output. A layer says by Layer::cut()
// if it can be one of these. An embedding has the rows of some tokens, and sums its output. The
// head has the logits of the same tokens, and the loss joins them (DividedLogits). Values only; not
// tied to any thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/nn/layer.h"
#include "core/nn/model.h"

namespace howmany {

struct Cut {
  enum Place { outputs, between, inputs, vocabulary } place = outputs;
  int index = 0, count = 1;  // of the ranks
  // The outputs are blocks of these relative sizes, each of which is divided: {1, 1, 1} before
  // attention (q, k and v).
  std::vector<int64_t> blocks = {1};
  std::function<void(Tensor)> sum = {};  // over the ranks, in place
};

// The place of a part of a parameter in the whole, of shape [outer, sum of divided, inner]. Each
// rank has a part of every block.
struct CutParam {
  std::string path;  // of the parameter
  int64_t outer = 1;
  std::vector<int64_t> divided;  // sizes of the blocks
  int64_t inner = 1;
};
// The first of `whole` that is in the part of rank `index`.
constexpr int64_t begin_of_part(int64_t whole, int index, int count) {
  return whole * index / count;
}

struct CutModel {
  LayerPtr layer;                // not materialized
  std::vector<CutParam> params;  // those of which each rank has a part
  bool logits = false;           // of the outputs, each rank has a part
};

// Returns the model with every chain and embedding cut that can be, and its head if `logits` are
// those of tokens. Other layers stay whole. `cut`: without place and blocks. Throws
// std::invalid_argument if no chain can be cut, if cut.count does not divide the heads of
// attention, or if a layer has fewer features than that.
CutModel cut_chains(Layer& model, const Cut& cut, bool logits = false);

// The sizes of the blocks of `out` outputs.
std::vector<int64_t> block_sizes(const Cut& cut, int64_t out);

// Returns whether the model's outputs are logits of its input's tokens.
bool makes_logits_of_tokens(const ModelSpec& model);

// Returns the largest divisor of `whole` up to `wanted`, for messages.
int64_t nearest_divisor(int64_t whole, int64_t wanted);

}  // namespace howmany
