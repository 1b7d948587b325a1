// SPDX-License-Identifier: Apache-2.0
#include "benches/common/meta_batch.h"

#include "core/nn/units.h"

namespace howmany::benches {

std::vector<Device> meta_devices(int first, int count) {
  std::vector<Device> devices;
  for (int i = first; i < first + count; ++i) devices.push_back({DeviceType::meta, i});
  return devices;
}

Batch meta_batch(const ModelSpec& model, int64_t global_rows, Share share, Device device) {
  const int64_t begin = share.begin(global_rows), rows = share.end(global_rows) - begin;
  const bool targets = model.loss == Loss::mse;
  return {.x = Tensor::empty(with_rows_in_front(rows, model.sample), model.input, device),
          .y = targets ? Tensor::empty({rows, model.classes}, Dtype::f32, device)
                       : Tensor::empty(with_rows_in_front(rows, model.labels), Dtype::i64, device),
          .global_rows = global_rows,
          .first_row = begin};
}

}  // namespace howmany::benches
