// How the time of one collective grows with its size: what was measured, a line through it (latency
// plus bytes over bandwidth, in up to six pieces, since caches and protocols change with size, and
// no more than pay, never falling with size), and where one backend overtakes another. Values only;
// not tied to any thread.
//
//   AlphaBeta fit = fit_alpha_beta(points);   // minimises the relative error
//   double seconds = fit.predict(25 << 20);
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
// The intervals do not meet; of one round the times must be a factor of two apart as well.
bool apart(const CurvePoint& fast, const CurvePoint& slow);

struct AlphaBeta {
  struct Piece {
    double from = 0, to = 0;  // bytes; the pieces meet
    double latency = 0, seconds_per_byte = 0;
  };
  std::vector<Piece> pieces;
  double error = 0;  // median relative error at fitted sizes, each left out of the fit in turn
  std::optional<double> held_back_error = {};  // the same at sizes kept out of the whole fit
  int fitted = 0, held_back = 0;

  double predict(double bytes) const;
  double latency() const { return pieces.front().latency; }
  double bytes_per_s() const;  // of large messages; infinite when time does not grow with size
};

// Sizes that are no power of two are kept out of the fit and judge it; where too few are, every
// fifth size, and none of fewer than five. A longer message is never predicted faster. Throws
// std::invalid_argument for no point or a time that is not above 0.
AlphaBeta fit_alpha_beta(const Curve& curve);
// Bytes: what is smaller takes half its time or more to start. Nothing where no size takes twice as
// long as starting.
std::optional<double> latency_below(const AlphaBeta& fit);

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
