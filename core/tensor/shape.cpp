// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/shape.h"

#include <algorithm>

#include "core/base/error.h"

namespace howmany {

Shape::Shape(std::initializer_list<int64_t> extents)
    : Shape(std::span<const int64_t>(extents.begin(), extents.size())) {}

Shape::Shape(std::span<const int64_t> extents) : rank_(static_cast<int>(extents.size())) {
  HM_REQUIRE(extents.size() <= kMaxRank, "[shape] {} extents, at most {} are supported",
             extents.size(), static_cast<int>(kMaxRank));
  for (int64_t e : extents) HM_REQUIRE(e >= 0, "[shape] negative extent {}", e);
  std::copy(extents.begin(), extents.end(), extents_.begin());
}

int64_t Shape::operator[](int i) const {
  const int index = i < 0 ? i + rank_ : i;
  HM_REQUIRE(index >= 0 && index < rank_, "[shape] extent {} of {}", i, str());
  return extents_[static_cast<size_t>(index)];
}

int64_t Shape::numel() const {
  if (std::ranges::count(extents(), 0) > 0) return 0;
  int64_t n = 1;
  for (int64_t e : extents())
    HM_REQUIRE(!__builtin_mul_overflow(n, e, &n), "[shape] {} has too many elements", str());
  return n;
}

Shape Shape::with_rows(int64_t rows) const {
  HM_REQUIRE(rank_ > 0, "[shape] a scalar has no rows");
  HM_REQUIRE(rows >= 0, "[shape] negative extent {}", rows);
  Shape s = *this;
  s.extents_[0] = rows;
  return s;
}

int64_t Shape::row_numel() const { return with_rows(1).numel(); }

std::string Shape::str() const { return fmt::format("[{}]", fmt::join(extents(), ",")); }

bool Shape::operator==(const Shape& other) const {
  return std::ranges::equal(extents(), other.extents());
}

}  // namespace howmany
