#include "reports/comm/curve.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <stdexcept>
#include <utility>

namespace howmany::reports {
namespace {

// Protocols (eager, rendezvous) and caches change every few powers of two: with three points a
// piece at least, lines through real curves were twice as far off at sizes held back.
constexpr size_t kMostPieces = 6, kLeastPoints = 2;
constexpr size_t kLeastToJudge = 3;
constexpr double kNoise = 0.02;  // relative: no measured time is nearer the truth
// Of a piece, as the criterion of Schwarz (BIC) counts them: two of its line, and two for its
// border, which is the best of many.
constexpr double kNumbersAPiece = 4;
constexpr size_t kHeldBackEvery = 5;
constexpr double kRounding = 1e-9;
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
  // Neither a negative latency nor a negative bandwidth means anything, nor what rounding leaves.
  if (!(line.per_byte * points.back().bytes > kRounding * line.latency))
    line = {.latency = su / uu};
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

// A file may hold times whose sums overflow.
double off(double predicted, const CurvePoint& p) {
  constexpr double kHopeless = 1e100;
  const double error = std::abs(predicted / p.seconds - 1);
  return error < kHopeless ? error : kHopeless;
}

double median_error(const AlphaBeta& fit, const Curve& curve) {
  std::vector<double> errors;
  for (const CurvePoint& p : curve) errors.push_back(off(fit.predict(p.bytes), p));
  return median(errors);
}

struct Parted {
  Curve kept, held;
};

Parted hold_back(const Curve& curve) {
  const auto powers = static_cast<size_t>(
      std::ranges::count_if(curve, [](const CurvePoint& p) { return power_of_two(p.bytes); }));
  const bool by_powers = powers >= kLeastToJudge && 3 * powers >= curve.size();
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

std::vector<AlphaBeta::Piece> pieces_through(const Curve& curve) {
  const Cutter cutter(curve);
  const std::vector<size_t> starts = cutter.best().starts;
  std::vector<AlphaBeta::Piece> pieces;
  double from = 0;
  for (size_t i = 0; i < starts.size(); ++i) {
    const bool last = i + 1 == starts.size();
    const size_t end = last ? curve.size() : starts[i + 1];
    const size_t after = i + 2 < starts.size() ? starts[i + 2] : curve.size();
    const double to =
        last ? std::numeric_limits<double>::infinity() : cutter.border(starts[i], end, after);
    const Line& line = cutter.line(starts[i], end);
    pieces.push_back({std::exchange(from, to), to, line.latency, line.per_byte});
  }
  return pieces;
}

// What lines were drawn through says little of them: each size is judged by those through the
// others; of many, which only a file of others has, some.
double left_out_error(const Curve& curve) {
  constexpr size_t kMostJudged = 64;
  std::vector<double> errors;
  for (size_t i = 0; i < curve.size(); i += 1 + curve.size() / kMostJudged) {
    Curve others = curve;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    AlphaBeta fit;
    fit.pieces = pieces_through(others);
    errors.push_back(off(fit.predict(curve[i].bytes), curve[i]));
  }
  return median(errors);
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
  fit.pieces = pieces_through(kept);
  fit.error = kept.size() < kLeastToJudge ? median_error(fit, kept) : left_out_error(kept);
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

}  // namespace howmany::reports
