// SPDX-License-Identifier: Apache-2.0
#include "parallel/modes/position_parts.h"

#include "core/nn/cut.h"

namespace howmany {
namespace {

// [N,T,K] with a row per sample.
Tensor samples(const Tensor& t) { return t.view({t.shape()[0], t.numel() / t.shape()[0]}); }

}  // namespace

Tensor part_of(const Tensor& whole, int rank, int ranks) {
  const Shape shape = part_of_positions(whole.shape(), ranks);
  Tensor part = Tensor::empty(shape, whole.dtype(), whole.device());
  if (part.numel() == 0) return part;
  const int64_t columns = part.numel() / shape[0];
  Tensor rows = samples(part);
  rows.copy_columns(0, samples(whole), rank * columns, columns);
  return part;
}

Tensor in_parts(const Tensor& whole, int ranks) {
  const Shape part = part_of_positions(whole.shape(), ranks);
  const Shape all{ranks, part[0], part[1], part[2]};
  if (part[0] <= 1) return whole.view(all);
  const Tensor parts = Tensor::empty(all, whole.dtype(), whole.device());
  const int64_t columns = part[1] * part[2];
  for (int rank = 0; rank < ranks; ++rank) {
    Tensor to = parts.rows(rank, rank + 1).view({part[0], columns});
    to.copy_columns(0, samples(whole), rank * columns, columns);
  }
  return parts;
}

Tensor from_parts(const Tensor& parts) {
  const Shape& all = parts.shape();
  const Shape shape{all[1], all[0] * all[2], all[3]};
  if (all[1] <= 1) return parts.view(shape);
  Tensor whole = Tensor::empty(shape, parts.dtype(), parts.device());
  const int64_t columns = all[2] * all[3];
  Tensor to = samples(whole);
  for (int64_t rank = 0; rank < all[0]; ++rank)
    to.copy_columns(rank * columns, parts.rows(rank, rank + 1).view({all[1], columns}), 0, columns);
  return whole;
}

}  // namespace howmany
