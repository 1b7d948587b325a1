#include "benches/quota_clock.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <thread>

#include "core/clock.h"

namespace howmany::benches {
namespace {

constexpr std::chrono::milliseconds kLook(1);

}  // namespace

QuotaClock::QuotaClock(const std::vector<CpuLimit>& limits, const std::string& root) {
  const auto least = std::ranges::min_element(limits, {}, &CpuLimit::cpus);
  if (least != limits.end() && !least->group.empty()) file_ = root + least->group + "/cpu.stat";
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
