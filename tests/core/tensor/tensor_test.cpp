// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/tensor.h"

#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>

#include "core/base/error.h"

namespace howmany {
namespace {

Tensor counting(const Shape& shape) {
  Tensor t = Tensor::empty(shape);
  float next = 0;
  for (float& v : t.mutable_values<float>()) v = next++;
  return t;
}

std::vector<float> list(const Tensor& t) {
  const auto values = t.values<float>();
  return {values.begin(), values.end()};
}

TEST(Tensor, StartsAsAsked) {
  EXPECT_EQ(list(Tensor::zeros({2})), (std::vector<float>{0, 0}));
  EXPECT_EQ(list(Tensor::full({2}, 1.5)), (std::vector<float>{1.5, 1.5}));
  EXPECT_EQ(Tensor::full({}, 7, Dtype::i64).item(), 7);
  EXPECT_EQ(list(Tensor::from<float>({1, 2}, {2, 1})), (std::vector<float>{1, 2}));
  EXPECT_EQ(Tensor::empty({3, 2}, Dtype::f64).bytes(), 48);
  EXPECT_THROW(Tensor::from<float>({1, 2}, {3}), std::invalid_argument);
}

TEST(Tensor, CopiesShareAndClonesDoNot) {
  Tensor a = counting({3});
  Tensor b = a, c = a.clone();
  b.mutable_data<float>()[0] = 9;
  EXPECT_EQ(a.data<float>()[0], 9);
  EXPECT_EQ(c.data<float>()[0], 0);
  EXPECT_TRUE(a.shares_storage_with(b));
  EXPECT_FALSE(a.shares_storage_with(c));
}

TEST(Tensor, ViewSharesStorage) {
  const Tensor a = counting({2, 3});
  Tensor v = a.view({3, 2});
  v.mutable_data<float>()[5] = -1;
  EXPECT_EQ(a.data<float>()[5], -1);
  EXPECT_THROW(a.view({4}), std::invalid_argument);
}

TEST(Tensor, RowsAndFlatAreWindows) {
  const Tensor a = counting({4, 2});
  EXPECT_EQ(list(a.rows(1, 3)), (std::vector<float>{2, 3, 4, 5}));
  EXPECT_EQ(list(a.rows(1, 3).rows(1, 2)), (std::vector<float>{4, 5}));
  EXPECT_EQ(list(a.flat(3, 5)), (std::vector<float>{3, 4}));
  EXPECT_EQ(list(a.rows(2, 4).flat(1, 3)), (std::vector<float>{5, 6}));
  EXPECT_EQ(list(a.rows(3, 4).clone()), (std::vector<float>{6, 7}));
  Tensor tail = a.rows(3, 4);
  tail.zero();
  EXPECT_EQ(list(a), (std::vector<float>{0, 1, 2, 3, 4, 5, 0, 0}));
}

TEST(Tensor, RefusesRowsOutside) {
  const Tensor a = counting({4, 2});
  EXPECT_THROW(a.rows(-1, 2), std::invalid_argument);
  EXPECT_THROW(a.rows(3, 2), std::invalid_argument);
  EXPECT_THROW(a.rows(0, 5), std::invalid_argument);
  EXPECT_THROW(a.flat(0, 9), std::invalid_argument);
  EXPECT_THROW(Tensor::zeros({}).rows(0, 1), std::invalid_argument);
}

TEST(Tensor, WorksWithoutElements) {
  const Tensor none = Tensor::zeros({0, 3});
  EXPECT_TRUE(none);
  EXPECT_EQ(none.numel(), 0);
  EXPECT_NE(none.raw(), nullptr);
  EXPECT_EQ(none.clone().shape(), (Shape{0, 3}));
  EXPECT_EQ(none.to(Dtype::f64).dtype(), Dtype::f64);
  EXPECT_EQ(counting({2, 3}).rows(1, 1).shape(), (Shape{0, 3}));
  EXPECT_EQ(Tensor::from<float>({}, {0}).numel(), 0);
}

TEST(Tensor, CopiesValuesBetweenShapesOfOneSize) {
  Tensor a = Tensor::zeros({2, 3});
  a.copy_from(counting({6}));
  EXPECT_EQ(list(a), (std::vector<float>{0, 1, 2, 3, 4, 5}));
  Tensor overlap = a.flat(1, 4);
  overlap.copy_from(a.flat(0, 3));
  EXPECT_EQ(list(a), (std::vector<float>{0, 0, 1, 2, 4, 5}));
  EXPECT_THROW(a.copy_from(counting({5})), std::invalid_argument);
  EXPECT_THROW(a.copy_from(Tensor::zeros({6}, Dtype::f64)), std::invalid_argument);
}

TEST(Tensor, CopiesColumns) {
  Tensor a = Tensor::zeros({2, 2, 2});
  a.copy_columns(1, counting({2, 3}), 0, 2);
  EXPECT_EQ(list(a), (std::vector<float>{0, 0, 1, 0, 0, 3, 4, 0}));
  a.copy_columns(3, counting({2, 3}), 2, 1);
  EXPECT_EQ(list(a), (std::vector<float>{0, 0, 1, 2, 0, 3, 4, 5}));
  a.copy_columns(4, counting({2, 3}), 3, 0);  // none
  EXPECT_THROW(a.copy_columns(2, counting({2, 3}), 0, 3), std::invalid_argument);
  EXPECT_THROW(a.copy_columns(-1, counting({2, 3}), 0, 1), std::invalid_argument);
  EXPECT_THROW(a.copy_columns(0, counting({2, 3}), 2, 2), std::invalid_argument);
  EXPECT_THROW(a.copy_columns(0, counting({3, 3}), 0, 1), std::invalid_argument);
  EXPECT_THROW(a.copy_columns(0, counting({2, 3}).to(Dtype::f64), 0, 1), std::invalid_argument);
  EXPECT_THROW(a.copy_columns(0, a, 1, 1), std::invalid_argument);
}

TEST(Tensor, ConvertsItsType) {
  const Tensor a = Tensor::from<double>({-1.75, 2.5}, {2});
  const auto ints = a.to(Dtype::i32);
  EXPECT_EQ(ints.values<int32_t>()[0], -1);
  EXPECT_EQ(ints.values<int32_t>()[1], 2);
  EXPECT_TRUE(a.to(Dtype::f64).shares_storage_with(a));
}

TEST(Tensor, RefusesTheWrongTypeAndEmptyHandles) {
  Tensor a = Tensor::zeros({2});
  EXPECT_THROW(a.data<double>(), std::invalid_argument);
  EXPECT_THROW(a.mutable_data<int64_t>(), std::invalid_argument);
  EXPECT_THROW(a.item(), std::invalid_argument);
  EXPECT_THROW(Tensor().data<float>(), std::invalid_argument);
  EXPECT_THROW(Tensor().set_attachment(nullptr), std::invalid_argument);
  EXPECT_FALSE(Tensor());
}

TEST(Tensor, VersionGrowsWithEveryWriterOfTheStorage) {
  Tensor a = Tensor::zeros({4});
  const uint64_t before = a.version();
  a.data<float>();
  EXPECT_EQ(a.version(), before);
  Tensor part = a.rows(2, 4);
  part.mutable_data<float>();
  EXPECT_GT(a.version(), before);
}

TEST(Tensor, KeepsAnAttachmentPerOffsetUntilTheStorageEnds) {
  std::weak_ptr<void> first, second;
  {
    const Tensor a = Tensor::zeros({4});
    EXPECT_EQ(a.attachment(), nullptr);
    auto one = std::make_shared<int>(1), two = std::make_shared<int>(2);
    first = one;
    second = two;
    a.set_attachment(std::move(one));
    a.rows(2, 4).set_attachment(std::move(two));
    EXPECT_EQ(*std::static_pointer_cast<int>(a.view({2, 2}).attachment()), 1);
    EXPECT_EQ(*std::static_pointer_cast<int>(a.rows(2, 3).attachment()), 2);
    a.set_attachment(nullptr);
    EXPECT_TRUE(first.expired());
    EXPECT_FALSE(second.expired());
  }
  EXPECT_TRUE(second.expired());
}

TEST(Tensor, RefusesWhatNoMemoryHolds) {
#ifdef HM_SANITIZED
  GTEST_SKIP() << "sanitizers end the program instead";
#endif
  const int64_t most = std::numeric_limits<int64_t>::max();
  EXPECT_THROW(Tensor::empty({most}), std::invalid_argument);  // its bytes exceed int64_t
  EXPECT_THROW(Tensor::empty({most}, Dtype::u8), Error);
  EXPECT_THROW(Tensor::empty({most / 8}, Dtype::f64), Error);
}

TEST(Tensor, RefusesADeviceThisBuildCannotServe) {
  const Device cuda{DeviceType::cuda, 4095};
  EXPECT_THROW(Tensor::zeros({2}, Dtype::f32, cuda), std::invalid_argument);
}

TEST(Dtype, KnowsSizesAndNames) {
  EXPECT_EQ(size_of(Dtype::f32), 4u);
  EXPECT_EQ(size_of(Dtype::i64), 8u);
  EXPECT_EQ(size_of(Dtype::u8), 1u);
  EXPECT_EQ(name_of(Dtype::f64), "f64");
  EXPECT_EQ(dtype_of<const int32_t>(), Dtype::i32);
}

}  // namespace
}  // namespace howmany
