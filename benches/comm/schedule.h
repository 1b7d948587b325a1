// SPDX-License-Identifier: Apache-2.0
// Decides how long each case of backend_bench may take. It reserves the necessary time for all
// later cases and gives spare time to the larger messages. Use from one thread.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "benches/comm/cases.h"
#include "benches/comm/collective_timing.h"

namespace howmany::benches {

struct Deal {
  double seconds = 0;
  int calls = 0;  // minimum number of timed calls; 1 if there is no time for the requested number
};

class Schedule {
 public:
  // `cases` must outlive this object. `now` returns seconds since the start; the default is the
  // wall clock.
  Schedule(const std::vector<BackendCase>& cases, double seconds, int least_calls,
           std::function<double()> now = {});
  // Call for the cases in their order. Returns nullopt if even one call does not fit after the time
  // of the shorter later cases is reserved. That maximizes the number of measured cases; the
  // longest are skipped.
  std::optional<Deal> take(const BackendCase& c);
  void took(const BackendCase& c, const CaseCost& cost);
  // Estimates from the next smaller sizes that were measured. Returns zeros if there is none of
  // this kind.
  CaseCost expected(const BackendCase& c) const;

 private:
  double weight_from(size_t at) const;
  std::vector<CaseCost> later() const;  // the shortest first

  const std::vector<BackendCase>& cases_;
  const double seconds_;
  const int calls_;
  const std::function<double()> now_;
  size_t next_ = 0;
  std::map<std::string, std::map<int64_t, CaseCost>> seen_;  // by operation, then by bytes
};

}  // namespace howmany::benches
