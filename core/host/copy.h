// SPDX-License-Identifier: Apache-2.0
// Copies host memory at the full speed of one core. For sizes above the L1 cache, glibc's memcpy
// uses `rep movsb`, which is slow on virtual machines. It uses non-temporal stores only for sizes
// above the host machine's cache. So copy_host() uses memcpy for short copies, a loop for longer
// ones, and non-temporal stores for those that exceed the cache.
// It took 0.68 of the time of memcpy (docs/RESULTS.md). Thread-safe.
#pragma once

#include <cstddef>

namespace howmany {

// Requires: the ranges do not overlap.
void copy_host(void* to, const void* from, size_t bytes);

}  // namespace howmany
