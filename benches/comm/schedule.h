// How long each case of backend_bench may take, so that all are measured: every case after this one
// is left the time that it needs, and what is spare goes to the larger messages. One thread.
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
  int calls = 0;  // to time at the least: 1 where there is no time for as many as were asked for
};

class Schedule {
 public:
  // `cases` outlive it. `now`: seconds since the start; without it, of wall clock.
  Schedule(const std::vector<BackendCase>& cases, double seconds, int least_calls,
           std::function<double()> now = {});
  // For one of the cases, in their order. Nothing when it does not fit, even with one call, beside
  // what the later ones need that take less: so most are measured, and what lacks are the longest.
  std::optional<Deal> take(const BackendCase& c);
  void took(const BackendCase& c, const CaseCost& cost);
  // From the sizes next below that were measured; nothing where none of the kind was.
  CaseCost expected(const BackendCase& c) const;

 private:
  double weight_from(size_t at) const;
  std::vector<CaseCost> later() const;  // the shortest first

  const std::vector<BackendCase>& cases_;
  const double seconds_;
  const int calls_;
  const std::function<double()> now_;
  size_t next_ = 0;
  std::map<std::string, std::map<int64_t, CaseCost>> seen_;  // of an operation by bytes
};

}  // namespace howmany::benches
