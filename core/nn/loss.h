// Losses: value and gradient in one call. The value stays on the device until it is asked for, so
// that nobody waits for a GPU before its backward has been asked for, too. The denominator is the
// global batch (times labels of a sample, or outputs for mse), so that sums over ranks or
// micro-batches are the global mean without another division.
#pragma once

#include <string_view>

#include "core/tensor/tensor.h"

namespace howmany {

enum class Loss { softmax_cross_entropy, mse };

struct LossResult {
  Tensor total{};  // f64 [1] on y's device: this part's share of the global mean
  Tensor dy{};     // gradient of the global mean with respect to y
  double value() const { return total.item(); }  // waits for the device
};

// softmax_cross_entropy: y [N,K] or, for a label of each token, [N,T,K]; target [N] or [N,T] i64 in
// [0,K), mean over all labels. mse: y and target [N,K], mean over all elements as torch.nn.MSELoss.
// global_rows is the number of samples N of the global batch. Throws std::invalid_argument for a
// label out of range.
LossResult compute_loss(Loss loss, const Tensor& y, const Tensor& target, int64_t global_rows);

}  // namespace howmany
