#include "reports/transfer_advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "reports/backend_cell.h"
#include "reports/backend_format.h"
#include "reports/format.h"

namespace howmany {
namespace {

constexpr double kWorthAThread = 1.1;  // more threads must bring this much
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

bool usable(const Measurement& m, const std::string& kind) {
  return m.suite == "transfer" && m.name == kind && !has_failed(m) &&
         std::isfinite(value_of(m, "median_s"));
}

CopyCurve& curve_of(std::vector<CopyCurve>& curves, int threads) {
  for (CopyCurve& c : curves)
    if (c.threads == threads) return c;
  curves.push_back({.threads = threads, .curve = {}, .fit = {}});
  return curves.back();
}

std::vector<CopyCurve> copies_of(const std::vector<Measurement>& measurements) {
  std::vector<CopyCurve> all;
  for (const Measurement& m : measurements) {
    if (!usable(m, "copy")) continue;
    const Metric& seconds = m.metrics.at("median_s");
    CurvePoint point{number_of(m, "bytes"), seconds.value};
    if (seconds.low && seconds.high) point.interval = Interval{*seconds.low, *seconds.high};
    curve_of(all, static_cast<int>(number_of(m, "threads"))).curve.push_back(point);
  }
  std::ranges::sort(all, {}, &CopyCurve::threads);
  for (CopyCurve& c : all) {
    std::ranges::sort(c.curve, {}, &CurvePoint::bytes);
    c.fit = fit_alpha_beta(c.curve);
    for (const CurvePoint& p : c.curve)
      if (p.bytes / p.seconds > c.best_bytes_per_s)
        c.best_bytes_per_s = p.bytes / p.seconds, c.best_at = p.bytes;
    c.large_bytes_per_s = c.curve.back().bytes / c.curve.back().seconds;
  }
  return all;
}

// Where the time to start equals the time to move, by the line through the small sizes.
std::optional<double> latency_below(const CopyCurve& copies) {
  const AlphaBeta::Piece& first = copies.fit.pieces.front();
  if (first.seconds_per_byte <= 0 || first.latency <= 0) return {};
  return std::min(first.latency / first.seconds_per_byte, first.to);
}

std::vector<StepTime> steps_of(const std::vector<Measurement>& measurements) {
  std::vector<StepTime> steps;
  for (const Measurement& m : measurements) {
    if (!usable(m, "step")) continue;
    const std::string model = parameter_of(m, "model"), part = parameter_of(m, "part");
    auto step = std::ranges::find(steps, model, &StepTime::model);
    if (step == steps.end()) {
      steps.push_back({model, static_cast<int64_t>(number_of(m, "batch")), kNaN, kNaN, kNaN});
      step = steps.end() - 1;
    }
    const double seconds = value_of(m, "median_s");
    (part == "batch_in"   ? step->batch_in
     : part == "loss_out" ? step->loss_out
                          : step->whole) = seconds;
  }
  return steps;
}

void recommend_threads(TransferAdvice& advice) {
  const CopyCurve* best = &advice.copies.front();
  for (const CopyCurve& c : advice.copies)
    if (c.large_bytes_per_s > kWorthAThread * best->large_bytes_per_s) best = &c;
  const CopyCurve& one = advice.copies.front();
  advice.recommended = best->threads;
  const std::string size = format_bytes(one.curve.back().bytes);
  if (best == &one) {
    advice.because = fmt::format(
        "Copy with one thread: it moves {} at {}, and more threads bring less than {:.0f} % more.",
        format_rate(one.large_bytes_per_s), size, 100 * (kWorthAThread - 1));
  } else {
    advice.because =
        fmt::format("Copy large buffers with {} threads: they move {} at {}, {} one thread's {}.",
                    best->threads, format_rate(best->large_bytes_per_s), size,
                    format_times(best->large_bytes_per_s / one.large_bytes_per_s),
                    format_rate(one.large_bytes_per_s));
  }
}

void add_latency(TransferAdvice& advice) {
  advice.latency_below = latency_below(advice.copies.front());
  if (!advice.latency_below) return;
  advice.notes.push_back(fmt::format(
      "Below {} a copy is latency ({} to start); above it is bandwidth.",
      format_bytes(*advice.latency_below), format_seconds(advice.copies.front().fit.latency())));
}

// Many small copies against the fastest way to move as many bytes.
void add_batching(TransferAdvice& advice, const std::vector<Measurement>& measurements) {
  const Measurement *smallest = nullptr, *largest = nullptr;
  for (const Measurement& m : measurements) {
    if (!usable(m, "small_copies")) continue;
    if (!smallest || number_of(m, "bytes") < number_of(*smallest, "bytes")) smallest = &m;
    if (!largest || number_of(m, "bytes") > number_of(*largest, "bytes")) largest = &m;
  }
  if (!smallest || smallest == largest) return;
  advice.notes.push_back(
      fmt::format("As {} copies of {} the same bytes take {} as long as in copies of {}.",
                  parameter_of(*smallest, "count"), format_bytes(number_of(*smallest, "bytes")),
                  format_times(value_of(*smallest, "median_s") / value_of(*largest, "median_s")),
                  format_bytes(number_of(*largest, "bytes"))));
}

void add_steps(TransferAdvice& advice) {
  for (const StepTime& s : advice.steps) {
    if (!std::isfinite(s.share())) continue;
    advice.notes.push_back(fmt::format(
        "{}, batch {}: moving a batch in takes {} and the loss out {}, {:.2g} % of the {} step: no "
        "way of copying can save more.",
        s.model, s.batch, format_seconds(s.batch_in), format_seconds(s.loss_out), 100 * s.share(),
        format_seconds(s.whole)));
  }
}

void add_others(TransferAdvice& advice, const std::vector<Measurement>& measurements) {
  std::set<std::string> told;
  for (const Measurement& m : measurements) {
    if (m.suite != "transfer") continue;
    if (usable(m, "loopback_tcp") && number_of(m, "bytes") >= 1 << 20)
      advice.loopback_bytes_per_s = value_of(m, "bytes_per_s");
    if (const double ratio = value_of(m, "of_memcpy"); std::isfinite(ratio))
      advice.notes.push_back(fmt::format(
          "The copy measured takes {:.3f} of the time of the C library's memcpy.", ratio));
    if (const double ratio = value_of(m, "of_stream"); std::isfinite(ratio))
      advice.notes.push_back(
          fmt::format("It takes {:.3f} of the time of a loop as STREAM's.", ratio));
    for (const std::string& flag : m.flags)
      if (flag.starts_with("failed: ") && told.insert(flag).second)
        advice.notes.push_back(fmt::format("Failed: {}: {}.", m.name, flag.substr(8)));
  }
}

}  // namespace

TransferAdvice advise_transfer(const std::vector<Measurement>& measurements) {
  TransferAdvice advice;
  advice.loopback_bytes_per_s = kNaN;
  advice.copies = copies_of(measurements);
  advice.steps = steps_of(measurements);
  if (advice.copies.empty()) {
    advice.because = "There is no answer, because no copy was measured.";
  } else {
    recommend_threads(advice);
    add_latency(advice);
  }
  add_batching(advice, measurements);
  add_steps(advice);
  add_others(advice, measurements);
  return advice;
}

nlohmann::ordered_json to_json(const TransferAdvice& advice,
                               const std::vector<Measurement>& measurements) {
  using Json = nlohmann::ordered_json;
  Json table = Json::array(), steps = Json::array(), fits = Json::array(), skipped = Json::array();
  for (const Measurement& m : measurements) {
    if (m.suite != "transfer") continue;
    if (!why_skipped(m).empty()) skipped.push_back({{"kind", m.name}, {"because", why_skipped(m)}});
    if (has_failed(m) || !std::isfinite(value_of(m, "median_s"))) continue;
    Json row = {{"kind", m.name}};
    for (const auto& [key, value] : m.parameters) row[key] = value;
    row["seconds"] = value_of(m, "median_s");
    row["bytes_per_s"] = finite_or_null(value_of(m, "bytes_per_s"));
    table.push_back(row);
  }
  for (const CopyCurve& c : advice.copies)
    fits.push_back({{"threads", c.threads},
                    {"latency_s", c.fit.latency()},
                    {"bytes_per_s", finite_or_null(c.fit.bytes_per_s())},
                    {"error", c.fit.error},
                    {"best_bytes_per_s", c.best_bytes_per_s},
                    {"best_at_bytes", c.best_at}});
  for (const StepTime& s : advice.steps)
    steps.push_back({{"model", s.model},
                     {"batch", s.batch},
                     {"batch_in_s", finite_or_null(s.batch_in)},
                     {"loss_out_s", finite_or_null(s.loss_out)},
                     {"step_s", finite_or_null(s.whole)}});
  return {{"recommended", advice.recommended ? Json(*advice.recommended) : Json(nullptr)},
          {"because", advice.because},
          {"notes", advice.notes},
          {"latency_below_bytes", finite_or_null(advice.latency_below.value_or(kNaN))},
          {"loopback_tcp_bytes_per_s", finite_or_null(advice.loopback_bytes_per_s)},
          {"fits", fits},
          {"steps", steps},
          {"skipped", skipped},
          {"table", table}};
}

}  // namespace howmany
