// SPDX-License-Identifier: Apache-2.0
#include "reports/transfer/advise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/base/schema/metrics.h"
#include "core/base/schema/parameters.h"
#include "core/base/schema/reasons.h"
#include "core/base/text/bytes.h"
#include "core/base/text/format.h"
#include "reports/results/cell.h"

namespace howmany::reports {
namespace {

constexpr double kWorth = 1.1;  // required speedup of more threads and of pinned memory

CopyCurve& curve_of(std::vector<CopyCurve>& curves, int threads) {
  for (CopyCurve& c : curves)
    if (c.threads == threads) return c;
  curves.push_back({.threads = threads, .curve = {}, .fit = {}});
  return curves.back();
}

std::vector<CopyCurve> copies_of(const std::vector<Measurement>& measurements) {
  std::vector<CopyCurve> all;
  for (const Measurement& m : measurements) {
    if (!is_timed_transfer(m, "copy")) continue;
    curve_of(all, count_of(m, parameter::kThreads)).curve.push_back(point_of(m));
  }
  std::ranges::sort(all, {}, &CopyCurve::threads);
  for (CopyCurve& c : all) {
    std::ranges::sort(c.curve, {}, &CurvePoint::bytes);
    c.fit = fit_alpha_beta(c.curve);
    for (const CurvePoint& p : c.curve)
      if (p.bytes / p.seconds > c.best_bytes_per_s)
        c.best_bytes_per_s = p.bytes / p.seconds, c.best_at = p.bytes;
  }
  return all;
}

std::vector<StepTime> steps_of(const std::vector<Measurement>& measurements) {
  std::vector<StepTime> steps;
  for (const Measurement& m : measurements) {
    if (!is_timed_transfer(m, "step")) continue;
    const std::string model = parameter_of(m, parameter::kModel),
                      device = parameter_of(m, parameter::kDevice);
    const auto same = [&](const StepTime& s) { return s.model == model && s.device == device; };
    auto step = std::ranges::find_if(steps, same);
    if (step == steps.end())
      step = steps.insert(step, {model, device, count_of(m, parameter::kBatch), {}});
    step->parts[parameter_of(m, parameter::kPart)] = point_of(m);
  }
  return steps;
}

// Returns the number of threads that is faster than the fewest by kWorth, and fastest.
const CopyCurve& most_worth(const std::vector<CopyCurve>& copies) {
  const CopyCurve *fewest = &copies.front(), *best = fewest;
  const auto pays = [](const CopyCurve& c, const CopyCurve& than) {
    const auto rates = compare_rates(c.curve, than.curve);
    return rates && !rates->noise && rates->ratio() > kWorth;
  };
  for (const CopyCurve& c : copies)
    if (pays(c, *fewest) && pays(c, *best)) best = &c;
  return *best;
}

std::string in_words(int threads) {
  return threads == 1 ? "one thread" : fmt::format("{} threads", threads);
}

// More threads are not worth it. The answer is certain if each was compared without noise.
void recommend_fewest(TransferAdvice& advice) {
  const CopyCurve& fewest = advice.copies.front();
  double largest = 0;  // the largest size compared
  for (const CopyCurve& c : advice.copies) {
    if (&c == &fewest) continue;
    const auto rates = compare_rates(c.curve, fewest.curve);
    advice.certain &= rates && !rates->noise;
    if (rates) largest = std::max(largest, rates->bytes);
  }
  const CurvePoint& p = largest > 0 ? *at_size(fewest.curve, largest) : fewest.curve.back();
  const std::string others = advice.copies.size() == 1 ? "no other number of threads was measured"
                             : largest == 0            ? "no other number could be compared"
                             : advice.certain          ? "more threads move less than 10 % more"
                                                       : "no gain from more threads was shown";
  advice.reason = reason::kMoreThreadsNotFaster;
  advice.because = fmt::format("Copy with {}: {} at {}; {}.", in_words(fewest.threads),
                               format_rate(p.bytes / p.seconds), format_bytes(p.bytes), others);
}

void recommend_threads(TransferAdvice& advice) {
  const CopyCurve &fewest = advice.copies.front(), &best = most_worth(advice.copies);
  advice.recommended = best.threads;
  if (&best == &fewest) return recommend_fewest(advice);
  const RateComparison rates = *compare_rates(best.curve, fewest.curve);
  advice.reason = reason::kMoreThreadsFaster;
  advice.because =
      fmt::format("Copy large buffers with {}: {} at {}, {} the {} of {}.", in_words(best.threads),
                  format_rate(rates.bytes_per_s), format_bytes(rates.bytes),
                  format_times(rates.ratio()), format_rate(rates.than), in_words(fewest.threads));
}

// If pinned and pageable copies to a GPU can be compared, the answer is about them.
void recommend_pinning(TransferAdvice& advice) {
  for (const std::string& gpu : advice.gpus.devices) {
    const auto to = [&](const char* memory) -> const Curve& {
      return advice.gpus.curve(kToDevice, {{"device", gpu}, {"memory", memory}, {"how", "sync"}});
    };
    const auto rates = compare_rates(to("pinned"), to("pageable"));
    if (!rates) continue;
    if (!advice.copies.empty()) advice.notes.push_back(advice.because);
    const bool faster = rates->ratio() >= kWorth;
    advice.certain = !rates->noise;
    advice.reason = faster ? reason::kPinnedFaster : reason::kPinnedNotFaster;
    advice.because = fmt::format("{}: {} to {} from pinned memory, {} from pageable ({}; {}{}).",
                                 !faster        ? "Pinning does not pay here"
                                 : rates->noise ? "Pinning may pay"
                                                : "Pin what goes to a GPU",
                                 format_rate(rates->bytes_per_s), gpu, format_rate(rates->than),
                                 format_bytes(rates->bytes), format_ratio(rates->ratio()) + "x",
                                 rates->noise ? ", within noise" : "");
    return;
  }
}

void add_notes(TransferAdvice& advice, const std::vector<Measurement>& measurements) {
  if (advice.latency_below)
    advice.notes.push_back(fmt::format(
        "Below {} a copy of host memory is latency ({} to start); above it is bandwidth.",
        format_bytes(*advice.latency_below), format_seconds(advice.copies.front().fit.latency)));
  std::set<std::string> seen;
  for (const Measurement& m : measurements)
    for (const std::string& flag : m.flags)
      if (m.suite == "transfer" && flag.starts_with("failed: ") && seen.insert(flag).second)
        advice.notes.push_back(fmt::format("Failed: {}: {}.", m.name, flag.substr(8)));
}

nlohmann::ordered_json direction_json(const GpuCopies& copies, const std::string& device,
                                      const char* kind) {
  const DirectionRates r = rates_of(copies, device, kind);
  return {{"pageable_bytes_per_s", finite_or_null(r.pageable)},
          {"pinned_bytes_per_s", finite_or_null(r.pinned)},
          {"pinned_async_bytes_per_s", finite_or_null(r.pinned_async)},
          {"registered_bytes_per_s", finite_or_null(r.registered)},
          {"write_combined_bytes_per_s", finite_or_null(r.write_combined)},
          {"both_ways_bytes_per_s", finite_or_null(r.both_ways)},
          {"latency_s", finite_or_null(r.latency_s)},
          {"latency_below_bytes", finite_or_null(r.latency_below)}};
}

}  // namespace

TransferAdvice advise_transfer(const std::vector<Measurement>& measurements) {
  TransferAdvice advice;
  advice.loopback_bytes_per_s = kNaN;
  for (const Measurement& m : measurements)
    if (is_timed_transfer(m, "loopback_tcp") && number_of(m, parameter::kBytes) >= 1 << 20)
      advice.loopback_bytes_per_s = value_of(m, metric::kBytesPerS);
  advice.copies = copies_of(measurements);
  advice.steps = steps_of(measurements);
  advice.gpus = gpu_copies_of(measurements);
  if (!advice.copies.empty()) {
    recommend_threads(advice);
    advice.latency_below = latency_below(advice.copies.front().curve);
  } else {
    const bool none = advice.gpus.lines.empty();
    advice.certain = false;
    advice.reason = none ? reason::kNothingMeasured : reason::kNotComparable;
    advice.because =
        none ? "No answer: no copy was measured." : "No answer: no two copies can be compared.";
  }
  recommend_pinning(advice);
  add_notes(advice, measurements);
  return advice;
}

nlohmann::ordered_json to_json(const TransferAdvice& advice,
                               const std::vector<Measurement>& measurements) {
  using Json = nlohmann::ordered_json;
  Json table = Json::array(), steps = Json::array(), fits = Json::array(), skipped = Json::array(),
       devices = Json::array();
  for (const Measurement& m : measurements) {
    if (m.suite != "transfer") continue;
    if (!why_skipped(m).empty()) skipped.push_back({{"kind", m.name}, {"because", why_skipped(m)}});
    if (has_failed(m) || !std::isfinite(value_of(m, metric::kMedianS))) continue;
    Json row = {{"kind", m.name}};
    for (const auto& [key, value] : m.parameters) row[key] = value;
    row["seconds"] = value_of(m, metric::kMedianS);
    row[metric::kBytesPerS] = finite_or_null(value_of(m, metric::kBytesPerS));
    table.push_back(row);
  }
  for (const CopyCurve& c : advice.copies)
    fits.push_back({{"threads", c.threads},
                    {"latency_s", c.fit.latency},
                    {metric::kBytesPerS, finite_or_null(c.fit.bytes_per_s())},
                    {"error", finite_or_null(c.fit.error.value_or(kNaN))},
                    {"best_bytes_per_s", c.best_bytes_per_s},
                    {"best_at_bytes", c.best_at}});
  for (const std::string& device : advice.gpus.devices)
    devices.push_back({{"device", device},
                       {"to_device", direction_json(advice.gpus, device, kToDevice)},
                       {"from_device", direction_json(advice.gpus, device, kFromDevice)}});
  for (const StepTime& s : advice.steps)
    steps.push_back({{"model", s.model},
                     {"device", s.device.empty() ? "cpu:0" : s.device},
                     {"batch", s.batch},
                     {"batch_in_s", finite_or_null(s.seconds("batch_in"))},
                     {"batch_in_pinned_s", finite_or_null(s.seconds("batch_in_pinned"))},
                     {"loss_out_s", finite_or_null(s.seconds("loss_out"))},
                     {"step_s", finite_or_null(s.seconds("whole"))}});
  return {{"recommended", advice.recommended ? Json(*advice.recommended) : Json(nullptr)},
          {"reason", advice.reason},
          {"because", advice.because},
          {"certain", advice.certain},
          {"disturbed", advice.disturbed},
          {"notes", advice.notes},
          {"latency_below_bytes", finite_or_null(advice.latency_below.value_or(kNaN))},
          {"loopback_tcp_bytes_per_s", finite_or_null(advice.loopback_bytes_per_s)},
          {"fits", fits},
          {"devices", devices},
          {"steps", steps},
          {"skipped", skipped},
          {"table", table}};
}

}  // namespace howmany::reports
