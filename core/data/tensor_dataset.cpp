// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "core/base/error.h"
#include "core/data/dataset.h"

namespace howmany {
namespace {

SampleSpec spec_of(const Tensor& x, const Tensor& y) {
  const auto row = [](const Tensor& t) { return Shape(t.shape().extents().subspan(1)); };
  return {row(x), x.dtype(), row(y), y.dtype()};
}

void copy_row(const Tensor& from, int64_t row, void* to) {
  const int64_t bytes = from.bytes() / from.shape()[0];
  std::memcpy(to, static_cast<const char*>(from.raw()) + row * bytes, static_cast<size_t>(bytes));
}

class TensorDataset final : public Dataset {
 public:
  TensorDataset(Tensor x, Tensor y) : x_(std::move(x)), y_(std::move(y)), spec_(spec_of(x_, y_)) {}

  int64_t size() const override { return x_.shape()[0]; }
  int64_t held_bytes() const override { return x_.bytes() + y_.bytes(); }
  SampleSpec spec() const override { return spec_; }
  std::string describe() const override {
    return fmt::format("{} samples {} in memory", size(), spec_.x.str());
  }

  void get(int64_t index, uint64_t, void* x, void* y) const override {
    HM_REQUIRE(index >= 0 && index < size(), "[tensor_dataset] sample {} of {}", index, size());
    copy_row(x_, index, x);
    copy_row(y_, index, y);
  }

 private:
  Tensor x_, y_;
  SampleSpec spec_;
};

}  // namespace

DatasetPtr tensor_dataset(Tensor x, Tensor y) {
  HM_REQUIRE(x && y && x.shape().rank() > 0 && y.shape().rank() > 0,
             "[tensor_dataset] x and y need a first extent of samples");
  HM_REQUIRE(x.shape()[0] == y.shape()[0], "[tensor_dataset] {} samples in x {}, {} in y {}",
             x.shape()[0], x.shape().str(), y.shape()[0], y.shape().str());
  HM_REQUIRE(x.device().type == DeviceType::cpu && y.device().type == DeviceType::cpu,
             "[tensor_dataset] x on {} and y on {}: samples are held on cpu", x.device().str(),
             y.device().str());
  return std::make_unique<TensorDataset>(std::move(x), std::move(y));
}

}  // namespace howmany
