// SPDX-License-Identifier: Apache-2.0
#include "benches/loader/quota_clock.h"

#include <chrono>
#include <fstream>
#include <thread>

#include "core/base/clock.h"

namespace howmany::benches {
namespace {

constexpr std::chrono::milliseconds kLook(1);

}  // namespace

QuotaClock::QuotaClock(const CpuLimits& limits, const std::string& root) {
  auto least = static_cast<double>(limits.allowed.size());
  for (const CpuLimit& limit : limits.limits) {
    if (limit.group.empty() || limit.cpus >= least) continue;
    least = limit.cpus;
    file_ = root + limit.group + "/cpu.stat";
  }
}

std::optional<int64_t> QuotaClock::periods() const {
  std::ifstream file(file_);
  std::string word;
  for (int64_t count = 0; file >> word >> count;)
    if (word == "nr_periods") return count;
  return {};
}

bool QuotaClock::wait(int64_t more, double seconds) const {
  const auto start = Clock::now();
  const auto until = periods();
  if (!until) return false;
  while (periods().value_or(0) < *until + more) {
    if (seconds_since(start) > seconds) return false;
    std::this_thread::sleep_for(kLook);
  }
  return true;
}

}  // namespace howmany::benches
