// SPDX-License-Identifier: Apache-2.0
// A model with its layers divided over a group of ranks (core/nn/cut.h), for the modes tensor, and
// hybrid with ways=n. Each rank has its part of some parameters; the others are whole on every
// rank. One thread at a time.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/nn/cut.h"
#include "core/nn/loss.h"
#include "core/nn/model.h"
#include "parallel/comm/comm.h"
#include "parallel/modes/mode.h"

namespace howmany {

class TensorParts {
 public:
  // Cuts `whole`, which is not materialized and must outlive this. `sum` adds a tensor of this rank
  // to those of the group, in place. `positions`: to divide them too. Collective over `group`,
  // which must outlive this. Throws std::invalid_argument as cut_chains() does, or if only some of
  // the group compute on GPUs.
  TensorParts(ModelSpec& whole, Comm& group, Device device, std::function<void(Tensor)> sum,
              std::optional<Positions> positions = {});

  // Returns the divided model, which is not materialized. Call once.
  ModelSpec take_model();
  // The loss of divided logits; nullopt if the logits are whole. `gather` joins the parts of ranks.
  std::optional<DividedLogits> logits(std::function<Tensor(Tensor)> gather) const;

  // Copies this rank's parts of the whole model's initial values into `mine`, the parameters of
  // the divided model or of some of its layers. One layer of the whole model is in memory at a
  // time.
  void take_initial(const std::vector<Param*>& mine, Dtype dtype, uint64_t seed);
  // Returns those of `mine` that are in CutModel::of_positions: the group sums their gradients.
  std::vector<Param*> of_positions(const std::vector<Param*>& mine) const;
  // Returns a tensor for the parts of all ranks, such as `part` [N,K] of each: [ranks,N,K].
  Tensor empty_for_all(const Tensor& part) const;
  // Returns a copy of a parameter's value or gradient, joined over the ranks. Collective.
  Tensor whole(const Param& p, const Tensor& value);

 private:
  void refuse_mix(Device device);
  Tensor own_part(const CutParam& param, const Tensor& whole) const;

  ModelSpec& whole_;
  Comm& group_;
  CutModel cut_model_;
  std::map<std::string, CutParam> cut_;  // by path
  std::map<std::string, Shape> shapes_;  // of the whole parameters
};

}  // namespace howmany
