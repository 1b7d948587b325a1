// What moving bytes inside one machine takes: copies of host memory by one or more threads, many
// small ones, from one NUMA node to another, and a stream over loopback TCP. Buffers are made and
// touched by the threads that use them; what arrived is compared with what was sent before and
// after timing (WrongData). Called from the main thread.
#pragma once

#include "benches/common/timing.h"

namespace howmany::benches {

// What is sent, and how it is compared with what arrived: throws WrongData with the first bad byte.
void fill_pattern(void* to, int64_t bytes);
void check_pattern(const void* seen, int64_t bytes, const char* what);

// Each of `threads` threads, bound to its own cpu device, copies its share of `bytes`; 0 bytes
// copied tell what the clock and the meeting of the threads cost.
Samples time_copy(int threads, int64_t bytes, const TimingOptions& options);

// One call of this many copies of `bytes` each, from and to places apart, as when a batch is made
// of samples. One thread.
Samples time_small_copies(int64_t bytes, int64_t count, const TimingOptions& options);

// `bytes` from one thread to another through a TCP connection of this machine to itself: what no
// backend over TCP can beat here.
Samples time_loopback(int64_t bytes, const TimingOptions& options);

// By a thread on the processors of node `on`, from memory of node `from` to memory of its own.
Samples time_numa_copy(int from, int on, int64_t bytes, const TimingOptions& options);

// The copy of time_copy, and a bare one with a clock around it and nothing else, in turn: the C
// library's memcpy, or a loop that copies as STREAM does.
PairedSamples time_against_memcpy(int64_t bytes, int rounds);
PairedSamples time_against_stream(int64_t bytes, int rounds);

}  // namespace howmany::benches
