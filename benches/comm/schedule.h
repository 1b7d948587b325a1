// SPDX-License-Identifier: Apache-2.0
// Divides the time of backend_bench among its cases, by the rule of core/base/budget.h. Larger
// messages have larger shares. Use from one thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "benches/comm/cases.h"
#include "benches/comm/collective_timing.h"
#include "core/base/budget.h"

namespace howmany::benches {

struct Deal {
  double seconds = 0;
  int calls = 0;  // minimum number of timed calls; 1 if there is no time for more
};

class Schedule {
 public:
  // `cases` must outlive this object.
  Schedule(const std::vector<BackendCase>& cases, Budget budget);
  // Call for the cases in their order. Returns nullopt if one call, and one of each shorter later
  // case, do not fit into the time left.
  std::optional<Deal> take(const BackendCase& c) const;
  void took(const BackendCase& c, const CaseCost& cost);
  // Scales the cost of the next smaller size that was measured. Returns zeros if there is none of
  // this kind.
  CaseCost expected(const BackendCase& c) const;

 private:
  const std::vector<BackendCase>& cases_;
  const Budget budget_;
  std::map<std::string, std::map<int64_t, CaseCost>> seen_;  // by operation, then by bytes
};

}  // namespace howmany::benches
