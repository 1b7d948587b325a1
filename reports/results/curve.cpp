// SPDX-License-Identifier: Apache-2.0
#include "reports/results/curve.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace howmany::reports {
namespace {

constexpr double kRounding = 1e-9;
// Measured: between two runs on a busy machine, two backends that were closer than this swapped
// order in one of eighteen cells. Others swapped in less than one of a hundred.
constexpr double kBetweenRuns = 2;

void check_curve(const Curve& curve) {
  if (curve.empty()) throw std::invalid_argument("[curve] no point");
  for (const CurvePoint& p : curve)
    if (!(p.seconds > 0 && std::isfinite(p.seconds)))
      throw std::invalid_argument("[curve] a time is not above 0");
}

// Minimizes ((a + b x) / t - 1)^2, so that all sizes count equally.
AlphaBeta least_squares(const Curve& curve) {
  double uu = 0, uv = 0, vv = 0, su = 0, sv = 0;
  for (const CurvePoint& p : curve) {
    const double u = 1 / p.seconds, v = p.bytes / p.seconds;
    uu += u * u, uv += u * v, vv += v * v, su += u, sv += v;
  }
  const double determinant = uu * vv - uv * uv;
  AlphaBeta fit;
  if (determinant > 1e-12 * uu * vv) {
    fit.latency = (su * vv - sv * uv) / determinant;
    fit.seconds_per_byte = (sv * uu - su * uv) / determinant;
  }
  // A negative or tiny slope gives no bandwidth.
  if (!(fit.seconds_per_byte * curve.back().bytes > kRounding * fit.latency))
    fit = {.latency = su / uu};
  if (fit.latency < 0) fit = {.seconds_per_byte = sv / vv};
  return fit;
}

// Returns the size at which the line through two points, on logarithmic axes, has this time.
double size_between(const CurvePoint& a, const CurvePoint& b, double seconds) {
  const double share = std::log(seconds / a.seconds) / std::log(b.seconds / a.seconds);
  return a.bytes * std::pow(b.bytes / a.bytes, share);
}

}  // namespace

const CurvePoint* at_size(const Curve& curve, double bytes) {
  const auto found = std::ranges::lower_bound(curve, bytes, {}, &CurvePoint::bytes);
  return found == curve.end() || found->bytes != bytes ? nullptr : &*found;
}

bool apart(const CurvePoint& fast, const CurvePoint& slow) {
  if (!fast.interval || !slow.interval || fast.interval->high >= slow.interval->low) return false;
  return !(fast.one_round || slow.one_round) || slow.seconds >= kBetweenRuns * fast.seconds;
}

AlphaBeta fit_alpha_beta(const Curve& curve) {
  check_curve(curve);
  AlphaBeta fit = least_squares(curve);
  fit.sizes = static_cast<int>(curve.size());
  if (fit.sizes < 3) return fit;
  double squares = 0;
  for (const CurvePoint& p : curve) squares += std::pow(fit.predict(p.bytes) / p.seconds - 1, 2);
  fit.error = std::sqrt(squares / (fit.sizes - 2));
  return fit;
}

std::optional<double> latency_below(const Curve& curve) {
  const double twice = 2 * fit_alpha_beta(curve).latency;
  const auto is_short = [&](const CurvePoint& p) { return p.seconds < twice; };
  const auto last = std::ranges::find_if(curve.rbegin(), curve.rend(), is_short);
  if (last == curve.rend() || last == curve.rbegin()) return {};
  return size_between(*last, *(last - 1), twice);
}

}  // namespace howmany::reports
