// SPDX-License-Identifier: Apache-2.0
// Measures transfers inside one machine: copies of host memory by one or more threads, many small
// copies, copies between NUMA nodes, and a loopback TCP stream. The threads that use buffers
// allocate and touch them. The received data are checked before and after timing (WrongData). Call
// from the main thread.
#pragma once

#include "benches/common/timing.h"

namespace howmany::benches {

// The data to send, and its check: throws WrongData with the first wrong byte.
void fill_pattern(void* to, int64_t bytes);
void check_pattern(const void* seen, int64_t bytes, const char* what);

// Each of `threads` threads, bound to its own cpu device, copies its share of `bytes`. With 0 bytes
// it measures the overhead of the clock and the barrier.
Samples time_copy(int threads, int64_t bytes, const TimingOptions& options);

// Each call makes this many copies of `bytes` each between non-contiguous places, like a batch made
// of samples. Uses one thread.
Samples time_small_copies(int64_t bytes, int64_t count, const TimingOptions& options);

// Sends `bytes` from one thread to another over a loopback TCP connection. No TCP backend can be
// faster here.
Samples time_loopback(int64_t bytes, const TimingOptions& options);

// A thread on node `on` copies from memory of node `from` to memory of its own node.
Samples time_numa_copy(int from, int on, int64_t bytes, const TimingOptions& options);

}  // namespace howmany::benches
