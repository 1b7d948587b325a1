// SPDX-License-Identifier: Apache-2.0
// Parameters of one unit of a model, divided over the ranks of a Comm. Rank r owns elements
// [r n, (r + 1) n) of the flat parameters, padded to n elements a rank. Optimizers work on that
// part alone.
//
// Source. ZeRO (Rajbhandari 2020) and PyTorch FSDP (Zhao 2023):
//   level 1: each rank keeps all values and gradients, and the optimizer state of its part;
//   level 2: and only its part of the gradients after backward;
//   level 3: and only its part of the values outside of forward and backward. It can gather them
//     in bf16, as with FSDP's param_dtype.
// Accumulation. Gradients of the next micro-batch are added: level 1 exchanges their sum once,
//   the others each micro-batch, so that they need no whole gradients between.
// Waiting. The waits are those of Work::wait().
// Thread safety. One thread per rank makes calls. All ranks make the same calls in the same order.
//
//   Shard shard(params, comm, 3, Dtype::f32);
//   shard.gather();            // before forward; starts an exchange
//   shard.wait_values();       // the parameters have their values
//   shard.begin_grads(false);  // before backward
//   shard.reduce();            // after it; starts an exchange
//   shard.wait_grads();        // the part has its gradient
//   optimizer->step({&shard.part()});
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/nn/layer.h"
#include "parallel/comm/comm.h"

namespace howmany {

class Shard {
 public:
  // Takes over the values of the parameters, which are materialized and equal on all ranks. Level 3
  // gathers them in the dtype `read`. The parameters and the comm must outlive this.
  Shard(std::vector<Param*> params, Comm& comm, int level, Dtype read);

  void gather();  // does nothing if the values are whole or coming
  void wait_values();
  void change_values() { state_ = State::parts; }  // an optimizer may have changed the parts
  void release_values();                           // level 3 frees them; do not use them any more

  // more: the gradients are those of a further micro-batch of the step.
  void begin_grads(bool more);
  void reduce();
  void wait_grads();

  // This rank's elements. Its name is that of the first parameter.
  Param& part() { return part_; }
  const std::vector<Param*>& params() const { return params_; }
  // Whole values and gradients by path, by an exchange between all ranks, in the dtype of the part.
  // Gradients require wait_grads().
  void gather_values(std::map<std::string, Tensor>& values) { gather_whole(part_.value, values); }
  void gather_grads(std::map<std::string, Tensor>& grads) { gather_whole(part_.grad, grads); }

 private:
  enum class State { parts, coming, whole };

  Tensor allocate(Dtype dtype) const;    // a flat one
  Tensor own(const Tensor& flat) const;  // this rank's part
  Tensor view_of(const Tensor& flat, size_t param) const;
  void point_values();
  void clear_gaps(Tensor& flat) const;
  void gather_whole(const Tensor& part, std::map<std::string, Tensor>& all);

  Comm& comm_;
  const int level_;
  const std::vector<Param*> params_;
  const Dtype read_;             // of gathered values
  std::vector<int64_t> begins_;  // of each parameter in the flat ones, and their end
  Tensor values_, grads_;        // flat; null while only the part is kept
  Tensor arriving_;              // the part of a further micro-batch
  Param part_;
  bool more_ = false;
  State state_ = State::whole;
  Work coming_, leaving_;
};

}  // namespace howmany
