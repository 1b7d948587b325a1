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
// head has the logits of the same tokens, and the loss joins them (DividedLogits).
//
// Sequence parallelism (Korthikanti et al., "Reducing activation recomputation in large transformer
// models", 2022). Each rank has a part of the positions T of [N,T,K] in residual branches, except
// in their pairs of linear layers. The first layer of a pair joins the parts, and keeps its input
// whole for backward, as in torch's SequenceParallel and in nanotron (Megatron-LM joins it again).
// The last one sums its output and returns a part.
//
// Values only; not tied to any thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/nn/layer.h"
#include "core/nn/model.h"

namespace howmany {

// Functions of the ranks that each have T / count positions of [N,T,K], in order. Collective.
struct Positions {
  std::function<Tensor(Tensor)> join = {};  // the parts of all ranks -> [N,T,K]
  std::function<Tensor(Tensor)> sum = {};   // [N,T,K] of all ranks -> this rank's part of the sum
  std::function<Tensor(Tensor)> own = {};   // [N,T,K] -> this rank's part; not collective
};

struct Cut {
  enum Place { outputs, between, inputs, vocabulary } place = outputs;
  int index = 0, count = 1;  // of the ranks
  // The outputs are blocks of these relative sizes, each of which is divided: {1, 1, 1} before
  // attention (q, k and v).
  std::vector<int64_t> blocks = {1};
  std::function<void(Tensor)> sum = {};     // over the ranks, in place
  std::optional<Positions> positions = {};  // if they are divided
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
  // Parameters that are whole on each rank, with gradients of only its positions, which the ranks
  // have to sum.
  std::vector<std::string> of_positions;
};

// Returns the model with every chain and embedding cut that can be, and its head if `logits` are
// those of tokens. Other layers stay whole. `cut`: without place and blocks. Throws
// std::invalid_argument if no chain can be cut, if cut.count does not divide the heads of
// attention, if a layer has fewer features than that, or if no positions can be divided and should.
CutModel cut_chains(Layer& model, const Cut& cut, bool logits = false);

// The same of a model, with its logits if they are those of tokens. Throws also if cut.count does
// not divide the positions and should.
CutModel cut_model(const ModelSpec& model, const Cut& cut);

// [N,T/count,K] -> [N,T,K], and back. The second throws std::invalid_argument if it cannot.
Shape joined_positions(const Shape& part, int count);
Shape part_of_positions(const Shape& whole, int count);

// The sizes of the blocks of `out` outputs.
std::vector<int64_t> block_sizes(const Cut& cut, int64_t out);

// Returns whether the model's outputs are logits of its input's tokens.
bool makes_logits_of_tokens(const ModelSpec& model);

// Returns the largest divisor of `whole` up to `wanted`, for messages.
int64_t nearest_divisor(int64_t whole, int64_t wanted);

}  // namespace howmany
