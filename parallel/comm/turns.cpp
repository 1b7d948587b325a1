// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/turns.h"

#include <algorithm>
#include <chrono>

namespace howmany {

double Turn::at(Clock::time_point time) const {
  const std::lock_guard lock(mutex_);
  return on_clock(time);
}

double Turn::on_clock(Clock::time_point time) const {
  const auto after = std::ranges::upper_bound(stretches_, time, {}, &Stretch::begin);
  const Stretch& in = after == stretches_.begin() ? *after : *(after - 1);
  if (runs_ == Runs::by_lose) return in.at;
  return in.at + std::chrono::duration<double>(time - in.begin).count();
}

void Turn::lose(double seconds) {
  const std::lock_guard lock(mutex_);
  const Clock::time_point time = Clock::now();
  stretches_.push_back({time, on_clock(time) + seconds});
}

double Turn::reserve_link(double earliest, double seconds) {
  const std::lock_guard lock(mutex_);
  double begin = earliest;
  for (const auto& [from, to] : link_busy_) {
    if (from >= begin + seconds) break;
    begin = std::max(begin, to);
  }
  link_busy_.emplace(begin, begin + seconds);
  return begin;
}

void Turn::take(double start) {
  device_.lock();
  const std::lock_guard lock(mutex_);
  std::erase_if(link_busy_, [&](const auto& busy) { return busy.second <= start; });
  stretches_.assign(1, {Clock::now(), start});
  waited_ = 0;
}

void Turn::leave() {
  left_ = now();
  device_.unlock();
}

void Turn::come_back(double end) {
  device_.lock();
  const std::lock_guard lock(mutex_);
  waited_ += std::max(0.0, end - left_);
  stretches_.push_back({Clock::now(), std::max(left_, end)});
}

}  // namespace howmany
