#include "reports/backend_curve.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <stdexcept>

namespace howmany {
namespace {

// Protocols (eager, rendezvous) and caches change every few powers of two.
constexpr size_t kMostPieces = 6, kLeastPoints = 2;
constexpr double kGoodEnough = 0.02;  // root mean square relative error
constexpr double kWorthAPiece = 0.5;  // a further piece must leave at most this share of the error

struct Line {
  double latency = 0, per_byte = 0, cost = 0;  // cost: sum of squared relative errors
};

// Least squares of (a + b x) / t - 1: every size counts alike, whatever its time.
Line fit_line(std::span<const CurvePoint> points) {
  double uu = 0, uv = 0, vv = 0, su = 0, sv = 0;
  for (const CurvePoint& p : points) {
    const double u = 1 / p.seconds, v = p.bytes / p.seconds;
    uu += u * u, uv += u * v, vv += v * v, su += u, sv += v;
  }
  const double determinant = uu * vv - uv * uv;
  Line line;
  if (points.size() > 1 && determinant > 1e-12 * uu * vv) {
    line.latency = (su * vv - sv * uv) / determinant;
    line.per_byte = (sv * uu - su * uv) / determinant;
  }
  // Neither a negative latency nor a negative bandwidth means anything.
  if (line.per_byte <= 0) line = {.latency = su / uu};
  if (line.latency < 0) line = {.per_byte = sv / vv};
  for (const CurvePoint& p : points) {
    const double error = (line.latency + line.per_byte * p.bytes) / p.seconds - 1;
    line.cost += error * error;
  }
  return line;
}

struct Split {
  double cost = std::numeric_limits<double>::infinity();
  std::vector<size_t> starts;  // of the pieces
};

// The best ways to cut the first points, by their number, into one piece more than `fewer` do.
std::vector<Split> one_piece_more(std::span<const CurvePoint> points,
                                  const std::vector<Split>& fewer) {
  std::vector<Split> best(points.size() + 1);
  for (size_t end = 0; end <= points.size(); ++end)
    for (size_t start = kLeastPoints; start + kLeastPoints <= end; ++start) {
      const double cost = fewer[start].cost + fit_line(points.subspan(start, end - start)).cost;
      if (!(cost < best[end].cost)) continue;
      best[end] = {cost, fewer[start].starts};
      best[end].starts.push_back(start);
    }
  return best;
}

std::vector<Split> one_piece(std::span<const CurvePoint> points) {
  std::vector<Split> whole(points.size() + 1);
  for (size_t end = 1; end <= points.size(); ++end)
    whole[end] = {fit_line(points.first(end)).cost, {0}};
  return whole;
}

Split cheapest_split(std::span<const CurvePoint> points) {
  std::vector<Split> splits = one_piece(points);
  Split best = splits.back();
  const double good = kGoodEnough * kGoodEnough * static_cast<double>(points.size());
  for (size_t pieces = 2; pieces <= kMostPieces && best.cost > good; ++pieces) {
    splits = one_piece_more(points, splits);
    if (splits.back().cost <= kWorthAPiece * best.cost) best = splits.back();
  }
  return best;
}

bool power_of_two(double bytes) {
  int exponent = 0;
  return std::frexp(bytes, &exponent) == 0.5;
}

double median_error(const AlphaBeta& fit, const Curve& curve) {
  std::vector<double> errors;
  for (const CurvePoint& p : curve)
    errors.push_back(std::abs(fit.predict(p.bytes) / p.seconds - 1));
  return median(errors);
}

// Where the straight lines between two sizes cross, on logarithmic axes.
double crossing(const CurvePoint& a0, const CurvePoint& a1, const CurvePoint& b0,
                const CurvePoint& b1) {
  const double before = std::log(a0.seconds / b0.seconds);
  const double after = std::log(a1.seconds / b1.seconds);
  const double at = before == after ? 0.5 : std::clamp(before / (before - after), 0.0, 1.0);
  return std::exp(std::lerp(std::log(a0.bytes), std::log(a1.bytes), at));
}

bool apart(const CurvePoint& fast, const CurvePoint& slow) {
  return fast.interval && slow.interval && fast.interval->high < slow.interval->low;
}

}  // namespace

const CurvePoint* at_size(const Curve& curve, double bytes) {
  const auto found = std::ranges::find(curve, bytes, &CurvePoint::bytes);
  return found == curve.end() ? nullptr : &*found;
}

double AlphaBeta::predict(double bytes) const {
  for (const Piece& piece : pieces)
    if (bytes <= piece.to) return piece.latency + piece.seconds_per_byte * bytes;
  return pieces.back().latency + pieces.back().seconds_per_byte * bytes;
}

double AlphaBeta::bytes_per_s() const { return 1 / pieces.back().seconds_per_byte; }

AlphaBeta fit_alpha_beta(const Curve& curve) {
  if (curve.empty()) throw std::invalid_argument("[fit] no point");
  Curve kept, held;
  for (const CurvePoint& p : curve) {
    if (!(p.seconds > 0 && std::isfinite(p.seconds)))
      throw std::invalid_argument("[fit] a time is not above 0");
    (power_of_two(p.bytes) ? kept : held).push_back(p);
  }
  if (kept.size() < 2) kept = curve, held.clear();
  const Split split = cheapest_split(kept);
  AlphaBeta fit;
  fit.fitted = static_cast<int>(kept.size());
  fit.held_back = static_cast<int>(held.size());
  for (size_t i = 0; i < split.starts.size(); ++i) {
    const bool last = i + 1 == split.starts.size();
    const size_t begin = split.starts[i], end = last ? kept.size() : split.starts[i + 1];
    const Line line = fit_line(std::span(kept).subspan(begin, end - begin));
    const double from = fit.pieces.empty() ? 0 : fit.pieces.back().to;
    const double to = last ? std::numeric_limits<double>::infinity()
                           : std::sqrt(kept[end - 1].bytes * kept[end].bytes);
    fit.pieces.push_back({from, to, line.latency, line.per_byte});
  }
  fit.error = median_error(fit, kept);
  if (!held.empty()) fit.held_back_error = median_error(fit, held);
  return fit;
}

std::optional<double> latency_below(const AlphaBeta& fit) {
  if (fit.latency() <= 0) return {};
  for (const AlphaBeta::Piece& piece : fit.pieces) {
    if (piece.seconds_per_byte <= 0) continue;
    const double twice = (2 * fit.latency() - piece.latency) / piece.seconds_per_byte;
    if (twice <= piece.to) return std::max(twice, piece.from);
  }
  return {};
}

std::vector<BestRange> best_ranges(const std::vector<NamedCurve>& curves) {
  std::vector<BestRange> ranges;
  if (curves.empty()) return ranges;
  std::vector<const CurvePoint*> before;
  size_t winner = 0;
  for (const CurvePoint& p : curves[0].curve) {
    std::vector<const CurvePoint*> here;
    for (const NamedCurve& named : curves) here.push_back(at_size(named.curve, p.bytes));
    if (std::ranges::find(here, nullptr) != here.end()) continue;
    const auto least =
        std::ranges::min_element(here, {}, [](const CurvePoint* point) { return point->seconds; });
    const auto best = static_cast<size_t>(least - here.begin());
    if (before.empty()) {
      ranges.push_back({curves[best].backend, 0});
    } else if (best != winner) {
      ranges.push_back({curves[best].backend,
                        crossing(*before[winner], *here[winner], *before[best], *here[best])});
    }
    winner = best;
    for (size_t i = 0; i < here.size(); ++i)
      if (i != best && !apart(*here[best], *here[i])) ranges.back().certain = false;
    before = std::move(here);
  }
  return ranges;
}

}  // namespace howmany
