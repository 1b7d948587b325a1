// SPDX-License-Identifier: Apache-2.0
// AwakeTime: the time since a start, less the time in which this process did not run: a job that
// Slurm suspended, a stopped process, a paused machine. Without this, every rank of a suspended job
// would time out when it is resumed. Not thread-safe.
#pragma once

#include <algorithm>
#include <chrono>

namespace howmany {

class AwakeTime {
 public:
  using Clock = std::chrono::steady_clock;

  explicit AwakeTime(Clock::time_point start = Clock::now()) : last_(start) {}
  // How long a thread that waits for at most `timeout` sleeps between two calls of so_far().
  static std::chrono::milliseconds slice_of(std::chrono::milliseconds timeout) {
    return std::min(timeout, std::chrono::milliseconds(100));
  }
  // Call this more often than once per second. A longer gap counts as one second.
  Clock::duration so_far(Clock::time_point now = Clock::now()) {
    awake_ += std::min<Clock::duration>(now - last_, kLongestGap);
    last_ = now;
    return awake_;
  }

 private:
  static constexpr std::chrono::seconds kLongestGap{1};
  Clock::time_point last_;
  Clock::duration awake_{0};
};

}  // namespace howmany
