// SPDX-License-Identifier: Apache-2.0
#include "core/nn/loss.h"

#include "core/backends/selection.h"
#include "core/ops/check.h"
#include "core/ops/ops.h"
#include "core/profile/range.h"

namespace howmany {
namespace {

LossResult cross_entropy(const Tensor& output, const Tensor& labels, int64_t global_rows,
                         const DividedLogits* divided = nullptr) {
  const char* const op = "softmax_cross_entropy";
  const Tensor y = ops::stored(output);
  check::floating(op, "y", y);
  HM_REQUIRE(y.shape().rank() >= 2, "[{}] y has shape {}, expected [N,..,K]", op, y.shape().str());
  const auto extents = y.shape().extents();
  const Shape labelled(extents.first(extents.size() - 1));
  const int64_t count = labelled.numel(), classes = y.shape()[-1];
  check::same(op, "target", labels, labelled, Dtype::i64, y.device());
  check::below(op, "label", labels, divided != nullptr ? divided->classes : classes);
  const Range range(Category::compute, op);
  const double all = static_cast<double>(global_rows) * static_cast<double>(labelled.row_numel());
  LossResult result{.dy = Tensor::empty({count, classes}, y.dtype(), y.device())};
  const Tensor rows = y.view({count, classes}), label = labels.view({count});
  if (divided == nullptr) {
    result.total = backend_for(y).softmax_cross_entropy(rows, label, all, result.dy);
  } else {
    Tensor part = Tensor::empty({count, 2}, beside(y.dtype()), y.device());
    backend_for(y).cross_entropy_part(rows, label, divided->first, part);
    result.total = backend_for(y).cross_entropy_of_parts(rows, label, divided->first,
                                                         divided->gather(part), all, result.dy);
  }
  result.dy = result.dy.view(y.shape());
  return result;
}

LossResult squared_error(const Tensor& output, const Tensor& target, int64_t global_rows) {
  const Tensor y = ops::stored(output);
  check::floating("mse", "y", y);
  check::rank("mse", "y", y, 2);
  check::beside("mse", "target", target, y.shape(), y);
  const Range range(Category::compute, "mse");
  LossResult result{.dy = Tensor::empty(y.shape(), y.dtype(), y.device())};
  const double values = static_cast<double>(global_rows) * static_cast<double>(y.shape()[1]);
  result.total = backend_for(y).mse(y, target, values, result.dy);
  return result;
}

void check_rows_of_loss(const Tensor& y, int64_t global_rows) {
  HM_REQUIRE(global_rows > 0 && y && y.shape().rank() > 0 && y.shape()[0] <= global_rows,
             "[loss] {} samples in the global batch, y {}", global_rows, y.shape().str());
}

}  // namespace

LossResult compute_loss(const DividedLogits& divided, const Tensor& y, const Tensor& target,
                        int64_t global_rows) {
  check_rows_of_loss(y, global_rows);
  return cross_entropy(y, target, global_rows, &divided);
}

LossResult compute_loss(Loss loss, const Tensor& y, const Tensor& target, int64_t global_rows) {
  check_rows_of_loss(y, global_rows);
  return loss == Loss::mse ? squared_error(y, target, global_rows)
                           : cross_entropy(y, target, global_rows);
}

LossResult compute_loss(Loss loss, const Tensor& y, const Tensor& target) {
  return compute_loss(loss, y, target, y && y.shape().rank() > 0 ? y.shape()[0] : 0);
}

}  // namespace howmany
