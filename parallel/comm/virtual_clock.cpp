// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/virtual_clock.h"

#include <algorithm>

namespace howmany {

double VirtualClock::now() const {
  const std::lock_guard lock(mutex_);
  return now_;
}

void VirtualClock::charge(double seconds) {
  const std::lock_guard lock(mutex_);
  now_ += seconds;
}

void VirtualClock::wait_until(double end) {
  const std::lock_guard lock(mutex_);
  now_ = std::max(now_, end);
}

double VirtualClock::reserve_link(double earliest, double seconds) {
  const std::lock_guard lock(mutex_);
  double begin = earliest;
  for (const auto& [from, to] : link_busy_) {
    if (from >= begin + seconds) break;
    begin = std::max(begin, to);
  }
  link_busy_.emplace(begin, begin + seconds);
  return begin;
}

void VirtualClock::restart(double time) {
  const std::lock_guard lock(mutex_);
  std::erase_if(link_busy_, [&](const auto& busy) { return busy.second <= time; });
  now_ = time;
}

}  // namespace howmany
