// SPDX-License-Identifier: Apache-2.0
#include "reports/transfer/advise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "core/base/schema/metrics.h"
#include "core/base/schema/parameters.h"
#include "core/base/schema/reasons.h"
#include "core/base/statistics.h"
#include "core/base/text/bytes.h"
#include "core/base/text/format.h"
#include "reports/results/cell.h"
#include "reports/transfer/words.h"

namespace howmany::reports {
namespace {

constexpr double kWorthAThread = 1.1;  // required speedup of more threads

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

StepTime& step_of(std::vector<StepTime>& steps, const Measurement& m) {
  const std::string model = parameter_of(m, parameter::kModel),
                    device = parameter_of(m, parameter::kDevice);
  for (StepTime& s : steps)
    if (s.model == model && s.device == device) return s;
  steps.push_back(
      {.model = model, .device = device, .batch = count_of(m, parameter::kBatch), .parts = {}});
  return steps.back();
}

std::vector<StepTime> steps_of(const std::vector<Measurement>& measurements) {
  std::vector<StepTime> steps;
  for (const Measurement& m : measurements)
    if (is_timed_transfer(m, "step"))
      step_of(steps, m).parts[parameter_of(m, parameter::kPart)] = point_of(m);
  return steps;
}

// Returns the number of threads that is faster than the fewest by kWorthAThread, and fastest.
const CopyCurve& most_worth(const std::vector<CopyCurve>& copies) {
  const CopyCurve *fewest = &copies.front(), *best = fewest;
  const auto pays = [](const CopyCurve& c, const CopyCurve& than) {
    const auto rates = compare_rates(c.curve, than.curve);
    return rates && !rates->noise && rates->ratio() > kWorthAThread;
  };
  for (const CopyCurve& c : copies)
    if (pays(c, *fewest) && pays(c, *best)) best = &c;
  return *best;
}

std::string in_words(int threads) {
  return threads == 1 ? "one thread" : fmt::format("{} threads", threads);
}

// The gain of each larger number of threads if none is worth it; nullopt if it cannot be compared.
using Gains = std::vector<std::optional<RateComparison>>;

Gains gains_of_more(const std::vector<CopyCurve>& copies) {
  Gains gains;
  for (const CopyCurve& c : copies)
    if (&c != &copies.front()) gains.push_back(compare_rates(c.curve, copies.front().curve));
  return gains;
}

bool is_certain(const Gains& gains) {
  return std::ranges::all_of(gains, [](const auto& gain) { return gain && !gain->noise; });
}

std::string in_words(const Gains& gains) {
  const auto is_told = [](const auto& gain) { return gain.has_value(); };
  if (gains.empty()) return "no other number of threads was measured";
  if (std::ranges::none_of(gains, is_told))
    return "no other number of threads was measured well enough to compare";
  if (is_certain(gains))
    return fmt::format("more threads bring less than {:.0f} % more", 100 * (kWorthAThread - 1));
  return "these runs show no gain from more threads";
}

std::string why_the_fewest(const std::vector<CopyCurve>& copies, const Gains& gains) {
  const CopyCurve& fewest = copies.front();
  double largest = 0;  // the largest size compared
  for (const auto& gain : gains) largest = std::max(largest, gain ? gain->bytes : 0);
  const CurvePoint& p = largest > 0 ? *at_size(fewest.curve, largest) : fewest.curve.back();
  return fmt::format("Copy with {}: {} {} at {}, and {}.", in_words(fewest.threads),
                     fewest.threads == 1 ? "it moves" : "they move",
                     format_rate(p.bytes / p.seconds), format_bytes(p.bytes), in_words(gains));
}

void recommend_threads(TransferAdvice& advice) {
  const CopyCurve &fewest = advice.copies.front(), &best = most_worth(advice.copies);
  advice.recommended = best.threads;
  if (&best == &fewest) {
    const Gains gains = gains_of_more(advice.copies);
    advice.certain = is_certain(gains);
    advice.reason = reason::kMoreThreadsNotFaster;
    advice.because = why_the_fewest(advice.copies, gains);
    return;
  }
  const RateComparison rates = *compare_rates(best.curve, fewest.curve);
  advice.reason = reason::kMoreThreadsFaster;
  advice.because =
      fmt::format("Copy large buffers with {}: they move {} at {}, {} the {} of {}.",
                  in_words(best.threads), format_rate(rates.bytes_per_s), format_bytes(rates.bytes),
                  format_times(rates.ratio()), format_rate(rates.than), in_words(fewest.threads));
}

void add_latency(TransferAdvice& advice) {
  advice.latency_below = latency_below(advice.copies.front().curve);
  if (!advice.latency_below) return;
  advice.notes.push_back(fmt::format(
      "Below {} a copy{} is latency ({} to start); above it is bandwidth.",
      format_bytes(*advice.latency_below), advice.gpus.lines.empty() ? "" : " of host memory",
      format_seconds(advice.copies.front().fit.latency)));
}

// Compares many small copies with the fastest way to move as many bytes.
void add_batching(TransferAdvice& advice, const std::vector<Measurement>& measurements) {
  const Measurement *smallest = nullptr, *largest = nullptr;
  for (const Measurement& m : measurements) {
    if (!is_timed_transfer(m, "small_copies")) continue;
    if (!smallest || number_of(m, parameter::kBytes) < number_of(*smallest, parameter::kBytes))
      smallest = &m;
    if (!largest || number_of(m, parameter::kBytes) > number_of(*largest, parameter::kBytes))
      largest = &m;
  }
  if (!smallest || smallest == largest) return;
  advice.notes.push_back(fmt::format(
      "As {} copies of {} the same bytes take {} as long as in copies of {}.",
      parameter_of(*smallest, parameter::kCount),
      format_bytes(number_of(*smallest, parameter::kBytes)),
      format_times(value_of(*smallest, metric::kMedianS) / value_of(*largest, metric::kMedianS)),
      format_bytes(number_of(*largest, parameter::kBytes))));
}

std::string saving(const CurvePoint& pageable, const CurvePoint& pinned) {
  if (within_noise(pageable, pinned)) return "nothing beyond noise";
  return pinned.seconds < pageable.seconds ? format_seconds(pageable.seconds - pinned.seconds)
                                           : "nothing";
}

// Returns the time that pinning the batch would save, or "" if it was not measured.
std::string saved_by_pinning(const StepTime& s) {
  if (!s.parts.contains("batch_in") || !s.parts.contains("batch_in_pinned")) return "";
  const CurvePoint &pageable = s.parts.at("batch_in"), &pinned = s.parts.at("batch_in_pinned");
  const double whole = s.seconds("whole");
  const std::string of =
      std::isfinite(whole) ? fmt::format("of the {} step", format_seconds(whole)) : "of a step";
  return fmt::format(
      "{} (a batch takes {} to get in from pageable memory, {} from pinned).",
      can_compare(pageable, pinned)
          ? fmt::format("pin_memory saves {} {}", saving(pageable, pinned), of)
          : fmt::format("the share {} that pin_memory saves could not be judged", of),
      format_seconds(pageable.seconds), format_seconds(pinned.seconds));
}

std::string share_of_moving(const StepTime& s) {
  const double in = s.seconds("batch_in"), out = s.seconds("loss_out"), whole = s.seconds("whole");
  if (!std::isfinite((in + out) / whole)) return "";
  return fmt::format(
      "moving a batch in takes {} and the loss out {}, {:.2g} % of the {} step: no way of copying "
      "can save more.",
      format_seconds(in), format_seconds(out), 100 * (in + out) / whole, format_seconds(whole));
}

void add_steps(TransferAdvice& advice, bool on_gpus) {
  for (const StepTime& s : advice.steps) {
    if (s.on_gpu() != on_gpus) continue;
    const std::string pinning = saved_by_pinning(s);
    const std::string what = pinning.empty() ? share_of_moving(s) : pinning;
    if (!what.empty())
      advice.notes.push_back(fmt::format("{}, batch {}{}: {}", s.model, s.batch,
                                         on_gpus ? " on " + s.device : "", what));
  }
}

// If there are GPUs, the answer is about them and threads become a note.
void lead_with_gpus(TransferAdvice& advice) {
  const auto pinning = pinning_in_words(advice.gpus);
  add_steps(advice, true);
  const std::vector<std::string> notes = notes_of(advice.gpus);
  advice.notes.insert(advice.notes.end(), notes.begin(), notes.end());
  if (!pinning) return;
  if (!advice.copies.empty()) advice.notes.push_back(advice.because);
  advice.reason = pinning->reason;
  advice.because = pinning->words;
  advice.certain = pinning->certain;
}

void add_others(TransferAdvice& advice, const std::vector<Measurement>& measurements) {
  std::set<std::string> told;
  for (const Measurement& m : measurements) {
    if (m.suite != "transfer") continue;
    if (is_timed_transfer(m, "loopback_tcp") && number_of(m, parameter::kBytes) >= 1 << 20)
      advice.loopback_bytes_per_s = value_of(m, metric::kBytesPerS);
    if (const double ratio = value_of(m, "of_bare"); std::isfinite(ratio))
      advice.notes.push_back(
          fmt::format("The copy to the {} measured takes {} of the time of a bare "
                      "cudaMemcpyAsync loop.",
                      m.name == "fidelity/to_host" ? "host" : "device", format_ratio(ratio, 3)));
    if (const double ratio = value_of(m, "of_memcpy"); std::isfinite(ratio))
      advice.notes.push_back(
          fmt::format("The copy measured takes {} of the time of the C library's memcpy.",
                      format_ratio(ratio, 3)));
    if (const double ratio = value_of(m, "of_stream"); std::isfinite(ratio))
      advice.notes.push_back(
          fmt::format("It takes {} of the time of a loop as STREAM's.", format_ratio(ratio, 3)));
    for (const std::string& flag : m.flags)
      if (flag.starts_with("failed: ") && told.insert(flag).second)
        advice.notes.push_back(fmt::format("Failed: {}: {}.", m.name, flag.substr(8)));
  }
}

}  // namespace

TransferAdvice advise_transfer(const std::vector<Measurement>& measurements,
                               const std::string& gpu) {
  TransferAdvice advice;
  advice.loopback_bytes_per_s = kNaN;
  advice.copies = copies_of(measurements);
  advice.steps = steps_of(measurements);
  advice.gpus = gpu_copies_of(measurements, gpu);
  advice.certain = !advice.copies.empty();
  if (advice.certain) {
    recommend_threads(advice);
  } else {
    const bool none = advice.gpus.lines.empty();
    advice.reason = none ? reason::kNothingMeasured : reason::kNotComparable;
    advice.because =
        none ? "No answer: no copy was measured." : "No answer: no two copies can be compared.";
  }
  lead_with_gpus(advice);
  if (!advice.copies.empty()) add_latency(advice);
  add_batching(advice, measurements);
  add_steps(advice, false);
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
          {"devices", devices_json(advice.gpus)},
          {"verdicts", verdicts_json(advice.gpus)},
          {"steps", steps},
          {"skipped", skipped},
          {"table", table}};
}

}  // namespace howmany::reports
