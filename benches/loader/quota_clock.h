// SPDX-License-Identifier: Apache-2.0
// The periods of a CPU quota. A quota grants CPU time at the beginning of each period, usually of
// 0.1 s. A process that has used its share stops until the next period. So a measurement that
// begins and ends inside a period depends on chance. Thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/host/cpu_limits.h"

namespace howmany::benches {

class QuotaClock {
 public:
  // Uses the smallest quota, if it is below the number of cores. `root` is a prefix of its cgroup
  // folder.
  explicit QuotaClock(const CpuLimits& limits = cpu_limits(), const std::string& root = "");

  bool binds() const { return !file_.empty(); }
  // Returns the number of periods so far, or nullopt if the kernel does not report it. It increases
  // only while cores are in use.
  std::optional<int64_t> periods() const;
  // Blocks until `more` further periods have begun. Returns false if that takes longer than
  // `seconds`.
  bool wait(int64_t more, double seconds) const;

 private:
  std::string file_;  // cpu.stat
};

}  // namespace howmany::benches
