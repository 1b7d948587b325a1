// SPDX-License-Identifier: Apache-2.0
// A Tape keeps what forward passes to backward. There is one per micro-batch in flight.
//
// Thread safety. A Tape is used by one thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "core/nn/param.h"
#include "core/ops/args.h"
#include "core/tensor/tensor.h"

namespace howmany {

class DeferredGrads;

struct TapeOptions {
  bool training = true;  // false: forward keeps nothing, and backward must not be called
  bool again = false;    // recompute of an earlier forward: running statistics are not updated
  uint64_t seed = 0;     // with step and first_row: makes dropout independent of the world size
  int64_t step = 0;
  int64_t first_row = 0;  // index of this tape's first sample in the global batch
  // Points to the step's step_seed() in memory of the model's device, for steps whose number is not
  // known when they are enqueued. Null: computed from `seed` and `step`.
  const uint64_t* seed_at = nullptr;
  SumOverReplicas sum_statistics = {};  // for batch norm; null: statistics of each replica alone
  DeferredGrads* later = nullptr;       // collects weight gradients; null: computed at once
};

class Tape {
 public:
  explicit Tape(TapeOptions options = {}) : options_(options) {}

  const TapeOptions& options() const { return options_; }
  bool training() const { return options_.training; }

  // A stack. pop() throws std::invalid_argument if it is empty.
  void push(Tensor kept);
  Tensor pop();
  void push_shape(const Shape& shape);  // if backward needs only the shape of x
  Shape pop_shape();
  bool empty() const { return stack_.empty(); }

  // Returns the random key of a layer whose stream is `stream`, for rows of `row_numel` elements.
  DropoutKey draw(uint64_t stream, int64_t row_numel);
  bool drew() const { return drew_; }
  void note_drew() { drew_ = true; }  // another tape drew for this one

  // Sets the model's input, for which no gradient is computed.
  void set_input(const Tensor& x) { input_ = x; }
  bool wants_grad(const Tensor& x) const { return !input_ || !x.shares_storage_with(input_); }

  // Layers call used() for each use of a parameter in forward, and done() for each use whose
  // gradient is complete in backward. The hook runs when the last use is done: the gradient is then
  // final. The hook must outlive backward.
  using Hook = std::function<void(Param&)>;
  void on_final(Hook hook) { hook_ = std::move(hook); }
  bool awaited() const { return hook_ != nullptr; }  // true if there is a hook
  const Hook& hook() const { return hook_; }
  void used(Param& param) { ++uses_[&param]; }
  void done(Param& param);

 private:
  TapeOptions options_;
  std::vector<Tensor> stack_;
  Tensor input_;
  Hook hook_;
  std::map<Param*, int> uses_;
  bool drew_ = false;
};

// Returns the seed of one step.
uint64_t step_seed(uint64_t seed, int64_t step);

}  // namespace howmany
