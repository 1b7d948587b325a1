#include "reports/backend_curve.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <stdexcept>
#include <utility>

namespace howmany {
namespace {

// Protocols (eager, rendezvous) and caches change every few powers of two.
constexpr size_t kMostPieces = 6, kLeastPoints = 3;
constexpr double kNoise = 0.02;  // relative: no measured time is nearer the truth
// Of a piece, as the criterion of Schwarz (BIC) counts them: two of its line, and two for its
// border, which is the best of many.
constexpr double kNumbersAPiece = 4;
constexpr size_t kHeldBackEvery = 5;
// Between two runs of the same cases on a busy machine the order of two backends changed in one of
// eighteen cells where they were nearer than this, and in less than one of a hundred elsewhere.
constexpr double kBetweenRuns = 2;

struct Line {
  double latency = 0, per_byte = 0, cost = 0;  // cost: sum of squared relative errors
  double at(double bytes) const { return latency + per_byte * bytes; }
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
    const double error = line.at(p.bytes) / p.seconds - 1;
    line.cost += error * error;
  }
  return line;
}

// Where one line hands over to the next, between the last size of the one and the first of the
// other: where they cross, if they do there.
double border_of(const Line& left, const Line& right, double last, double first) {
  const double crossing = (right.latency - left.latency) / (left.per_byte - right.per_byte);
  return crossing >= last && crossing <= first ? crossing : std::sqrt(last * first);
}

struct Split {
  double cost = std::numeric_limits<double>::infinity();
  std::vector<size_t> starts;  // of the pieces
};

// The best way to cut points into pieces of which none begins below the end of the one before.
class Cutter {
 public:
  explicit Cutter(std::span<const CurvePoint> points) : points_(points) {
    for (size_t start = 0; start < points.size(); ++start)
      for (size_t end = start + 1; end <= points.size(); ++end)
        lines_.push_back(fit_line(points.subspan(start, end - start)));
  }

  Split best() const {
    Splits splits = whole();
    Split best = splits[0].back();
    double least = score(best);
    for (size_t pieces = 2; pieces <= kMostPieces; ++pieces) {
      splits = one_piece_more(splits);
      for (const std::vector<Split>& of_start : splits)
        if (const double now = score(of_start.back()); now < least)
          best = of_start.back(), least = now;
    }
    return best;
  }

  const Line& line(size_t start, size_t end) const {
    return lines_[start * (2 * points_.size() - start + 1) / 2 + end - start - 1];
  }
  double border(size_t before, size_t start, size_t end) const {
    return border_of(line(before, start), line(start, end), points_[start - 1].bytes,
                     points_[start].bytes);
  }

 private:
  // By the start of the last piece and its end: the best with so many pieces.
  using Splits = std::vector<std::vector<Split>>;

  Splits none() const { return {points_.size(), std::vector<Split>(points_.size() + 1)}; }

  Splits whole() const {
    Splits splits = none();
    for (size_t end = 1; end <= points_.size(); ++end) splits[0][end] = {line(0, end).cost, {0}};
    return splits;
  }

  Splits one_piece_more(const Splits& fewer) const {
    Splits more = none();
    for (size_t start = kLeastPoints; start + kLeastPoints <= points_.size(); ++start)
      for (size_t before = 0; before + kLeastPoints <= start; ++before)
        if (std::isfinite(fewer[before][start].cost))
          for (size_t end = start + kLeastPoints; end <= points_.size(); ++end)
            improve(more[start][end], fewer[before][start], before, start, end);
    return more;
  }

  void improve(Split& best, const Split& fewer, size_t before, size_t start, size_t end) const {
    const double cost = fewer.cost + line(start, end).cost;
    if (!(cost < best.cost) || falls(before, start, end)) return;
    best = {cost, fewer.starts};
    best.starts.push_back(start);
  }

  bool falls(size_t before, size_t start, size_t end) const {
    constexpr double kRounding = 1e-9;
    const double at = border(before, start, end);
    return line(start, end).at(at) < (1 - kRounding) * line(before, start).at(at);
  }

  double score(const Split& split) const {
    const auto n = static_cast<double>(points_.size());
    return n * std::log(split.cost / n + kNoise * kNoise) +
           kNumbersAPiece * static_cast<double>(split.starts.size()) * std::log(n);
  }

  const std::span<const CurvePoint> points_;
  std::vector<Line> lines_;  // of all stretches
};

bool power_of_two(double bytes) {
  int exponent = 0;
  return std::frexp(bytes, &exponent) == 0.5;
}

double off(double predicted, const CurvePoint& p) { return std::abs(predicted / p.seconds - 1); }

double median_error(const AlphaBeta& fit, const Curve& curve) {
  std::vector<double> errors;
  for (const CurvePoint& p : curve) errors.push_back(off(fit.predict(p.bytes), p));
  return median(errors);
}

// How far the line through the others of a piece is off at each; what a line was drawn through says
// little of it.
void add_left_out(std::span<const CurvePoint> piece, std::vector<double>& errors) {
  for (size_t i = 0; i < piece.size(); ++i) {
    Curve others(piece.begin(), piece.end());
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    errors.push_back(off(fit_line(others).at(piece[i].bytes), piece[i]));
  }
}

struct Parted {
  Curve kept, held;
};

Parted hold_back(const Curve& curve) {
  const auto powers = static_cast<size_t>(
      std::ranges::count_if(curve, [](const CurvePoint& p) { return power_of_two(p.bytes); }));
  const bool by_powers = powers >= kLeastPoints && 3 * powers >= curve.size();
  Parted parted;
  for (size_t i = 0; i < curve.size(); ++i) {
    const bool in_turn = curve.size() >= kHeldBackEvery && i % kHeldBackEvery == kHeldBackEvery / 2;
    const bool held = by_powers ? !power_of_two(curve[i].bytes) : in_turn;
    (held ? parted.held : parted.kept).push_back(curve[i]);
  }
  return parted;
}

void check(const Curve& curve) {
  if (curve.empty()) throw std::invalid_argument("[fit] no point");
  for (const CurvePoint& p : curve)
    if (!(p.seconds > 0 && std::isfinite(p.seconds)))
      throw std::invalid_argument("[fit] a time is not above 0");
}

// The pieces, and the median of the errors at sizes left out in turn.
void add_pieces(AlphaBeta& fit, const Curve& kept) {
  const Cutter cutter(kept);
  const std::vector<size_t> starts = cutter.best().starts;
  std::vector<double> errors;
  double from = 0;
  for (size_t i = 0; i < starts.size(); ++i) {
    const bool last = i + 1 == starts.size();
    const size_t end = last ? kept.size() : starts[i + 1];
    const size_t after = i + 2 < starts.size() ? starts[i + 2] : kept.size();
    const double to =
        last ? std::numeric_limits<double>::infinity() : cutter.border(starts[i], end, after);
    const Line& line = cutter.line(starts[i], end);
    fit.pieces.push_back({std::exchange(from, to), to, line.latency, line.per_byte});
    add_left_out(std::span(kept).subspan(starts[i], end - starts[i]), errors);
  }
  fit.error = kept.size() < kLeastPoints ? median_error(fit, kept) : median(errors);
}

// Where the straight lines between two sizes cross, on logarithmic axes.
double crossing(const CurvePoint& a0, const CurvePoint& a1, const CurvePoint& b0,
                const CurvePoint& b1) {
  const double before = std::log(a0.seconds / b0.seconds);
  const double after = std::log(a1.seconds / b1.seconds);
  const double at = before == after ? 0.5 : std::clamp(before / (before - after), 0.0, 1.0);
  return std::exp(std::lerp(std::log(a0.bytes), std::log(a1.bytes), at));
}

bool apart_from_all(const std::vector<const CurvePoint*>& here, size_t best) {
  for (size_t i = 0; i < here.size(); ++i)
    if (i != best && !apart(*here[best], *here[i])) return false;
  return true;
}

}  // namespace

const CurvePoint* at_size(const Curve& curve, double bytes) {
  const auto found = std::ranges::find(curve, bytes, &CurvePoint::bytes);
  return found == curve.end() ? nullptr : &*found;
}

bool apart(const CurvePoint& fast, const CurvePoint& slow) {
  if (!fast.interval || !slow.interval || fast.interval->high >= slow.interval->low) return false;
  return !(fast.one_round || slow.one_round) || slow.seconds >= kBetweenRuns * fast.seconds;
}

double AlphaBeta::predict(double bytes) const {
  for (const Piece& piece : pieces)
    if (bytes <= piece.to) return piece.latency + piece.seconds_per_byte * bytes;
  return pieces.back().latency + pieces.back().seconds_per_byte * bytes;
}

double AlphaBeta::bytes_per_s() const { return 1 / pieces.back().seconds_per_byte; }

AlphaBeta fit_alpha_beta(const Curve& curve) {
  check(curve);
  const auto [kept, held] = hold_back(curve);
  AlphaBeta fit;
  fit.fitted = static_cast<int>(kept.size());
  fit.held_back = static_cast<int>(held.size());
  add_pieces(fit, kept);
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
    const bool told = apart_from_all(here, best);
    ranges.back().certain &= told;
    ranges.back().partly |= told;
    before = std::move(here);
  }
  return ranges;
}

}  // namespace howmany
