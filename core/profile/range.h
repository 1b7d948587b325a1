// SPDX-License-Identifier: Apache-2.0
// Named ranges for profilers. Every step, forward, backward, optimizer, data wait, copy and
// collective is a range.
//
// Output. If a tool is attached, ranges go to the NVTX domain "howmany", with category and payload.
//   If a recording runs (recorder.h), they are recorded.
// Cost. About 6 ns if there is neither.
// Builds. range_nvtx.cpp if the NVTX headers are found, else range_none.cpp.
// Thread safety. Thread-safe.
#pragma once

#include <cstdint>

namespace howmany {

enum class Category : uint32_t { step = 1, compute, optimizer, data, copy, comm };
constexpr uint32_t kCategories = 6;
const char* name_of(Category category);

class Range {
 public:
  // `name` must be a literal or outlive the program. The payload is FLOP for compute, and bytes for
  // copy, data and comm. A range must end on the thread that began it.
  Range(Category category, const char* name, uint64_t payload = 0);
  ~Range();
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;

 private:
  uint64_t recording_ = 0;  // 0: not recorded, and the members below are not set
  int64_t start_;
  const char* name_;
  uint64_t payload_;
  Category category_;
};

bool ranges_built_in();  // false in builds without the NVTX headers

}  // namespace howmany
