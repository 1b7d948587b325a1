// SPDX-License-Identifier: Apache-2.0
// The rows of a global batch that one rank trains on.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/tensor/tensor.h"

namespace howmany {

// Share `index` of `count` owns the rows [begin, end) of a batch of n rows. Shares are as even as
// possible, the first ones larger.
struct Share {
  int index = 0, count = 1;
  int64_t begin(int64_t n) const { return n / count * index + std::min<int64_t>(index, n % count); }
  int64_t end(int64_t n) const { return Share{index + 1, count}.begin(n); }
};

struct Batch {
  Tensor x, y;
  int64_t global_rows = 0;  // rows of the global batch
  int64_t first_row = 0;    // index of row 0 in the global batch
  int64_t number = 0;       // of the batch in the epoch
};

}  // namespace howmany
