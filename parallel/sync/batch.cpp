// SPDX-License-Identifier: Apache-2.0
#include "parallel/sync/batch.h"

#include "core/backends/selection.h"
#include "core/base/error.h"

namespace howmany {

void check_batch(const Batch& batch) {
  HM_REQUIRE(batch.x && batch.y && batch.x.shape().rank() > 0 && batch.y.shape().rank() > 0,
             "[step] a batch needs x and y with rows");
  const int64_t rows = batch.x.shape()[0];
  HM_REQUIRE(rows > 0 && rows == batch.y.shape()[0], "[step] rows differ: x {}, y {}",
             batch.x.shape().str(), batch.y.shape().str());
  HM_REQUIRE(batch.first_row >= 0 && batch.first_row + rows <= batch.global_rows,
             "[step] rows [{}, {}) of a global batch of {}", batch.first_row,
             batch.first_row + rows, batch.global_rows);
}

void check_rows(std::string_view mode, int64_t global_rows, int parts, std::string_view what) {
  HM_REQUIRE(global_rows >= parts,
             "[{}] a global batch of {} rows over {} {} leaves some without a row", mode,
             global_rows, parts, what);
}

Tensor placed(const Tensor& t, Dtype dtype, Device device) {
  const bool is_float = t.dtype() == Dtype::f32 || t.dtype() == Dtype::f64;
  return is_float ? t.to(dtype).to(device) : t.to(device);
}

Tensor stored_for(Device device, const Tensor& activation) {
  const Dtype whole = activation.dtype() == Dtype::bf16 ? Dtype::f32 : activation.dtype();
  return activation.to(stored_dtype(whole, device));
}

}  // namespace howmany
