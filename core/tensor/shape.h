// SPDX-License-Identifier: Apache-2.0
// A row-major shape: up to six non-negative extents. Cheap to copy.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace howmany {

class Shape {
 public:
  static constexpr int kMaxRank = 6;

  Shape() = default;  // rank 0: one element
  Shape(std::initializer_list<int64_t> extents);
  explicit Shape(std::span<const int64_t> extents);

  int rank() const { return rank_; }
  // A negative i counts from the end. Throws std::invalid_argument if i is out of range.
  int64_t operator[](int i) const;
  std::span<const int64_t> extents() const { return {extents_.data(), static_cast<size_t>(rank_)}; }

  // Product of the extents. Throws std::invalid_argument if it exceeds int64_t.
  int64_t numel() const;
  // The same shape with extent 0 replaced: [8,3] with_rows(2) -> [2,3].
  Shape with_rows(int64_t rows) const;
  // Elements in one row: numel / extent 0.
  int64_t row_numel() const;

  std::string str() const;  // "[2,3]"
  bool operator==(const Shape& other) const;

 private:
  std::array<int64_t, kMaxRank> extents_{};
  int rank_ = 0;
};

}  // namespace howmany
