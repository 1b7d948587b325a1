// Copies host memory as fast as one core does. Above the first cache the C library's memcpy takes
// `rep movsb`, which is slow on virtual machines, and goes round the caches only beyond their
// host's
// (`transfer_bench --benchmark_filter=fidelity` compares). So memcpy copies what is short, a loop
// what is longer, and stores that go round the caches what would not stay in them. Thread-safe.
#pragma once

#include <cstddef>

namespace howmany {

// The two must not overlap.
void copy_host(void* to, const void* from, size_t bytes);

}  // namespace howmany
