// A quota deals the cores out anew at the beginning of each period, mostly of a tenth of a second;
// a process that has used its share up stands still until then. So a time that begins and ends
// within periods is of luck. Thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/host/cpu_limits.h"

namespace howmany::benches {

class QuotaClock {
 public:
  // Of the smallest quota, when it allows fewer cores than there are to run on. `root` stands
  // before its folder.
  explicit QuotaClock(const CpuLimits& limits = cpu_limits(), const std::string& root = "");

  bool binds() const { return !file_.empty(); }
  // Periods so far; nothing when the kernel does not tell. It counts on only while cores are used.
  std::optional<int64_t> periods() const;
  // Until so many more have begun. False when they have not in `seconds`.
  bool wait(int64_t more, double seconds) const;

 private:
  std::string file_;  // cpu.stat
};

}  // namespace howmany::benches
