// SPDX-License-Identifier: Apache-2.0
// The time of one collective or copy by its size. A fit has two parameters:
// latency plus bytes over bandwidth. Values only; not tied to any thread.
//
//   AlphaBeta fit = fit_alpha_beta(curve);  // minimises the relative error
#pragma once

#include <optional>
#include <vector>

#include "core/base/statistics.h"

namespace howmany::reports {

struct CurvePoint {
  double bytes = 0, seconds = 0;
  std::optional<Interval> interval = {};  // 95 %, of seconds
  bool one_round = false;  // the interval is from within one run and omits variation between runs
};
using Curve = std::vector<CurvePoint>;  // sorted by bytes, sizes unique

const CurvePoint* at_size(const Curve& curve, double bytes);  // nullptr if not measured
// True if the intervals do not overlap. With one round, times must also differ by a factor of two.
bool apart(const CurvePoint& fast, const CurvePoint& slow);

struct AlphaBeta {
  double latency = 0, seconds_per_byte = 0;  // neither is negative
  int sizes = 0;
  std::optional<double> error = {};  // residual standard error, relative; needs three sizes

  double predict(double bytes) const { return latency + seconds_per_byte * bytes; }
  double bytes_per_s() const { return 1 / seconds_per_byte; }  // infinite if times do not grow
};

// Throws std::invalid_argument if the curve is empty or a time is not above 0.
AlphaBeta fit_alpha_beta(const Curve& curve);
// The size that takes twice the fitted latency: below it, latency is half of the time or more.
// Returns nullopt if no measured size takes less than that, or none takes more.
std::optional<double> latency_below(const Curve& curve);

}  // namespace howmany::reports
