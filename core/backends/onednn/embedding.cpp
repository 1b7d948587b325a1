// SPDX-License-Identifier: Apache-2.0
#include "core/backends/onednn/loops.h"
#include "core/backends/onednn/onednn.h"

namespace howmany::onednn {

void OneDnn::embedding(const Tensor& ids, const Tensor& table, int64_t first, Tensor& y) const {
  const int64_t here = table.shape()[0], width = table.shape()[1];
  const int64_t* id = ids.data<int64_t>();
  const float* rows = table.data<float>();
  float* out = y.mutable_data<float>();
  parallel_for(ids.numel(), width, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = id[i] - first;
      if (row >= 0 && row < here)
        std::copy_n(rows + row * width, width, out + i * width);
      else
        std::fill_n(out + i * width, width, 0.0F);
    }
  });
}

// Threads divide the columns, so that repeated ids are added in the same order with any team size.
void OneDnn::embedding_backward(const Tensor& ids, const Tensor& dy, int64_t first,
                                GradOut& dtable) const {
  if (!dtable.accumulate) dtable.value.zero();
  const int64_t rows = dtable.value.shape()[0], width = dtable.value.shape()[1];
  const int64_t count = ids.numel();
  const int64_t* id = ids.data<int64_t>();
  const float* d = dy.data<float>();
  float* out = dtable.value.mutable_data<float>();
  parallel_for(width, count, [&](int64_t begin, int64_t end) {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t row = id[i] - first;
      if (row < 0 || row >= rows) continue;
      for (int64_t c = begin; c < end; ++c) out[row * width + c] += d[i * width + c];
    }
  });
}

}  // namespace howmany::onednn
