// SPDX-License-Identifier: Apache-2.0
// Losses: value and gradient in one call.
//
// Asynchrony. The value stays on the device until value() is called, so that backward can be
//   enqueued before the host waits for the GPU.
// Scaling. The denominator is the global batch size, times the labels per sample or (mse) the
//   outputs. So sums over ranks or micro-batches are global means without another division.
#pragma once

#include <functional>

#include "core/tensor/tensor.h"

namespace howmany {

enum class Loss { softmax_cross_entropy, mse };

struct LossResult {
  Tensor total{};  // f64 [1] on the device of y: this part's contribution to the global mean
  Tensor dy{};     // gradient of the global mean with respect to y
  double value() const { return total.item(); }  // blocks the host until the device is done
};

// softmax_cross_entropy: y [N,K], or [N,T,K] with one label per token; target i64 [N] or [N,T] in
// [0,K). The mean is over all labels.
// mse: y and target [N,K]. The mean is over all elements, as in torch.nn.MSELoss.
// global_rows is the number of samples in the global batch. Throws std::invalid_argument if a label
// is out of range.
LossResult compute_loss(Loss loss, const Tensor& y, const Tensor& target, int64_t global_rows);
// The same for a batch that is not divided: global_rows is the number of rows of y.
LossResult compute_loss(Loss loss, const Tensor& y, const Tensor& target);

// Cross entropy of logits that are divided over ranks: y has those of labels [first, first + K) of
// `classes`. Collective over the ranks, all of which get the same total.
struct DividedLogits {
  int64_t first = 0, classes = 0;
  std::function<Tensor(Tensor)> gather{};  // [N,2] of each rank -> [ranks,N,2]
};
LossResult compute_loss(const DividedLogits& divided, const Tensor& y, const Tensor& target,
                        int64_t global_rows);

}  // namespace howmany
