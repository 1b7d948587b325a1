// Named ranges for profilers. Every step, forward, backward, optimizer, data wait, copy and
// collective is one: in the NVTX domain "howmany" with its category and a payload (FLOP or bytes)
// when a tool listens, and in the recording while there is one (see recorder.h). Some 6 ns when
// nobody listens. range_nvtx.cpp is built when the NVTX headers are there, range_none.cpp
// otherwise. Thread-safe.
#pragma once

#include <cstdint>

namespace howmany {

enum class Category : uint32_t { step = 1, compute, optimizer, data, copy, comm };
constexpr uint32_t kCategories = 6;
const char* name_of(Category category);

class Range {
 public:
  // `name` must be a literal or outlive the program; payload is FLOP for compute, bytes for copy,
  // data and comm. Ends on the thread it began on.
  Range(Category category, const char* name, uint64_t payload = 0);
  ~Range();
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;

 private:
  uint64_t recording_ = 0;  // 0: in none, and nothing below is set
  int64_t start_;
  const char* name_;
  uint64_t payload_;
  Category category_;
};

bool ranges_built_in();  // for other tools; false in builds without the NVTX headers

}  // namespace howmany
