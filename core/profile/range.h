// Named ranges for profilers. Every step, forward, backward, optimizer, data wait, copy and
// collective is one, in the NVTX domain "howmany" with its category and a payload (FLOP or bytes).
// Some 3 ns when no tool listens. range_nvtx.cpp is built when the NVTX headers are there,
// range_none.cpp otherwise. Thread-safe.
#pragma once

#include <cstdint>

namespace howmany {

enum class Category : uint32_t { step = 1, compute, optimizer, data, copy, comm };

class Range {
 public:
  // `name` must be a literal or outlive the program; payload is FLOP for compute, bytes for copy,
  // data and comm.
  Range(Category category, const char* name, uint64_t payload = 0);
  ~Range();
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;
};

bool ranges_built_in();  // false in builds without the NVTX headers

}  // namespace howmany
