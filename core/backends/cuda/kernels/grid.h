// SPDX-License-Identifier: Apache-2.0
// Launch configurations and fast division: host arithmetic, tested without a GPU. The threads of a
// block are a power of two, as block reductions require. Private to core/backends/cuda.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace howmany::cuda {

constexpr unsigned kMaxThreads = 256;
constexpr unsigned kWarp = 32;
constexpr int64_t kMaxBlocks = 8192;  // enough for any GPU; kernels loop over the rest

struct Grid {
  unsigned blocks = 1, threads = 1;
};

constexpr Grid grid_for_elements(int64_t n) {
  const int64_t blocks = (n + kMaxThreads - 1) / kMaxThreads;
  return {static_cast<unsigned>(std::clamp<int64_t>(blocks, 1, kMaxBlocks)), kMaxThreads};
}

// One block per row, no wider than the row needs.
constexpr Grid grid_for_rows(int64_t rows, int64_t width) {
  const auto wanted = static_cast<unsigned>(std::clamp<int64_t>(width, kWarp, kMaxThreads));
  return {static_cast<unsigned>(std::clamp<int64_t>(rows, 1, kMaxBlocks)),
          std::min(std::bit_ceil(wanted), kMaxThreads)};
}

// Columns of [rows, columns], or packs of them, are summed in `chunks` chunks of `chunk` rows. That
// gives the GPU enough threads and keeps the number of partial sums small.
struct ColumnPlan {
  int64_t chunk = 0, chunks = 1;
};

constexpr ColumnPlan plan_columns(int64_t rows, int64_t columns) {
  constexpr int64_t kThreads = 1 << 16, kMaxChunks = 8192, kMinRows = 16;
  if (rows <= 1 || columns == 0) return {rows, 1};
  const int64_t most = std::clamp<int64_t>(rows / kMinRows, 1, kMaxChunks);
  const int64_t wanted = std::clamp<int64_t>(kThreads / columns, 1, most);
  const int64_t chunk = (rows + wanted - 1) / wanted;
  return {chunk, (rows + chunk - 1) / chunk};
}

// Divides non-negative indices by a divisor that the host knows. GPUs have no division instruction,
// and a 64-bit division takes about as long as the memory access of an element. Below 2^31 it is a
// product with 2^p / divisor rounded up (Granlund and Montgomery 1994), else a division.
class Divisor {
 public:
  constexpr Divisor(int64_t by)  // NOLINT: an extent is a divisor
      : by_(by),
        shift_(31 + static_cast<int>(std::bit_width(static_cast<uint64_t>(by > 0 ? by - 1 : 0)))),
        factor_(by > 0 && by < kSmall ? ((uint64_t{1} << shift_) + static_cast<uint64_t>(by) - 1) /
                                            static_cast<uint64_t>(by)
                                      : 0) {}
  constexpr int64_t operator()(int64_t n) const {
    if (n >= kSmall || factor_ == 0) return n / by_;
    return static_cast<int64_t>(static_cast<uint64_t>(n) * factor_ >> shift_);
  }
  constexpr int64_t rest(int64_t n) const { return n - (*this)(n)*by_; }

 private:
  static constexpr int64_t kSmall = int64_t{1} << 31;
  int64_t by_;
  int shift_;
  uint64_t factor_;
};

}  // namespace howmany::cuda
