// The time of one collective or copy by its size. The measured times decide. Between measured sizes
// times are interpolated on logarithmic axes. Beyond them a fit of two parameters predicts: latency
// plus bytes over bandwidth. Values only; not tied to any thread.
//
//   double seconds = seconds_at(curve, 25 << 20);
//   AlphaBeta fit = fit_alpha_beta(curve);  // minimises the relative error
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/statistics.h"

namespace howmany::reports {

struct CurvePoint {
  double bytes = 0, seconds = 0;
  std::optional<Interval> interval = {};  // 95 %, of seconds
  bool one_round = false;  // the interval is from within one run, and sees nothing between runs
};
using Curve = std::vector<CurvePoint>;  // by bytes, each size once

const CurvePoint* at_size(const Curve& curve, double bytes);  // nullptr: not measured
bool is_within(const Curve& curve, double bytes);             // the range of measured sizes
// The intervals do not meet; of one round the times must be a factor of two apart as well.
bool apart(const CurvePoint& fast, const CurvePoint& slow);

struct AlphaBeta {
  double latency = 0, seconds_per_byte = 0;  // neither is negative
  int sizes = 0;
  std::optional<double> error = {};  // residual standard error, relative; needs three sizes

  double predict(double bytes) const { return latency + seconds_per_byte * bytes; }
  double bytes_per_s() const { return 1 / seconds_per_byte; }  // infinite if times do not grow
};

// Both throw std::invalid_argument if the curve is empty or a time is not above 0.
AlphaBeta fit_alpha_beta(const Curve& curve);
double seconds_at(const Curve& curve, double bytes);
// The size that takes twice the fitted latency: below it, latency is half of the time or more.
// Returns nullopt if no measured size takes less than that, or none takes more.
std::optional<double> latency_below(const Curve& curve);

// From this size on (up to the next range) this backend is the fastest, or not apart from it.
struct BestRange {
  std::string backend;
  double from = 0;
  bool certain = true;  // at each of its sizes it is apart from every other backend
  bool partly = false;  // at one of them at least
};
struct NamedCurve {
  std::string backend;
  Curve curve;
};
// Over the sizes that all curves have, the first range from 0, and as few as the intervals allow;
// the borders are where the lines between neighbouring sizes cross. Empty without a common size.
std::vector<BestRange> best_ranges(const std::vector<NamedCurve>& curves);

}  // namespace howmany::reports
