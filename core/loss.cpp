#include "core/loss.h"

#include "core/check.h"
#include "core/profile/range.h"

namespace howmany {
namespace {

LossResult cross_entropy(const Tensor& y, const Tensor& labels, int64_t global_rows) {
  const char* const op = "softmax_cross_entropy";
  check::floating(op, "y", y);
  check::rank(op, "y", y, 2);
  check::same(op, "target", labels, {y.shape()[0]}, Dtype::i64, y.device());
  check::below(op, "label", labels, y.shape()[1]);
  const Range range(Category::compute, op);
  LossResult result{0, Tensor::empty(y.shape(), y.dtype(), y.device())};
  result.value =
      backend_for(y).softmax_cross_entropy(y, labels, static_cast<double>(global_rows), result.dy);
  return result;
}

LossResult squared_error(const Tensor& y, const Tensor& target, int64_t global_rows) {
  check::floating("mse", "y", y);
  check::rank("mse", "y", y, 2);
  check::alike("mse", "target", target, y);
  const Range range(Category::compute, "mse");
  LossResult result{0, Tensor::empty(y.shape(), y.dtype(), y.device())};
  const double values = static_cast<double>(global_rows) * static_cast<double>(y.shape()[1]);
  result.value = backend_for(y).mse(y, target, values, result.dy);
  return result;
}

}  // namespace

LossResult compute_loss(Loss loss, const Tensor& y, const Tensor& target, int64_t global_rows) {
  HM_REQUIRE(global_rows > 0 && y && y.shape().rank() > 0 && y.shape()[0] <= global_rows,
             "[loss] {} samples in the global batch, y {}", global_rows, y.shape().str());
  return loss == Loss::mse ? squared_error(y, target, global_rows)
                           : cross_entropy(y, target, global_rows);
}

}  // namespace howmany
