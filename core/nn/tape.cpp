// SPDX-License-Identifier: Apache-2.0
#include "core/nn/tape.h"

#include "core/base/error.h"
#include "core/tensor/rng.h"

namespace howmany {

void Tape::push(Tensor kept) { stack_.push_back(std::move(kept)); }

Tensor Tape::pop() {
  HM_REQUIRE(!stack_.empty(), "[tape] backward pops more tensors than forward pushed");
  Tensor kept = std::move(stack_.back());
  stack_.pop_back();
  return kept;
}

void Tape::push_shape(const Shape& shape) {
  const auto extents = shape.extents();
  push(Tensor::from(std::vector<int64_t>(extents.begin(), extents.end()), Shape{shape.rank()}));
}

Shape Tape::pop_shape() { return Shape(pop().values<int64_t>()); }

DropoutKey Tape::draw(uint64_t stream, int64_t row_numel) {
  drew_ = true;
  const uint64_t seed = options_.seed_at != nullptr ? 0 : step_seed(options_.seed, options_.step);
  return {seed, stream, options_.first_row * row_numel, options_.seed_at};
}

uint64_t step_seed(uint64_t seed, int64_t step) {
  const uint64_t high = Rng(seed).bits(2 * static_cast<uint64_t>(step));
  const uint64_t low = Rng(seed).bits(2 * static_cast<uint64_t>(step) + 1);
  return high << 32 | low;
}

void Tape::done(Param& param) {
  param.has_grad = true;
  HM_ASSERT(uses_[&param] > 0);
  if (--uses_[&param] == 0 && hook_) hook_(param);
}

}  // namespace howmany
