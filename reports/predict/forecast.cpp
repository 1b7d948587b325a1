// SPDX-License-Identifier: Apache-2.0
#include "reports/predict/forecast.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "core/base/error.h"
#include "core/base/schema/marks.h"
#include "core/base/schema/metrics.h"
#include "core/base/schema/parameters.h"
#include "core/base/text/format.h"
#include "core/base/text/table.h"
#include "reports/predict/decide.h"
#include "reports/predict/forecast_json.h"

namespace howmany::reports {
namespace {

constexpr int kUsualFactor = 4;      // of the largest measured number
constexpr double kInputBound = 0.2;  // of the time
constexpr double kMoreWait = 2;      // times the share of fewer devices

template <typename T>
bool parse(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

bool is_usable(const Measurement& m) {
  return std::ranges::none_of(m.flags, [](const std::string& flag) {
    return flag.starts_with("failed: ") || flag.starts_with(mark::kOversubscribed) ||
           flag.starts_with(mark::kUsesOneDevice);
  });
}

void refuse_if_unlike_the_curves(const Measurement& m, const std::optional<Rehearsed>& rehearsed) {
  const bool cpu = rehearsed && rehearsed->cluster.device == kCpuDevice;
  if (!cpu && parameter_of(m, "device_list").starts_with("cpu"))
    throw InputError(
        "the run was measured on CPU devices, and the predictions are of GPUs: give --rates, a run "
        "on GPUs, or --cluster and a rehearsal for a cluster of CPUs");
  if (const std::string scaling = parameter_of(m, parameter::kScaling);
      scaling == "neither" || (scaling == "strong" && !rehearsed))
    throw InputError(
        fmt::format("the run has {} scaling, and predictions are compared with weak scaling only: "
                    "keep the batch per device",
                    scaling == "strong" ? "strong" : "neither weak nor strong"));
}

std::string interval(const Range& range) {
  return fmt::format("{} to {}", format_ratio(range.low), format_ratio(range.high));
}

Offer measured_offer(const RateAt& first, const RateAt& one) {
  const double efficiency = relative_efficiency(first, one);
  Offer offer;
  offer.devices = one.devices;
  offer.evidence = Evidence::kMeasured;
  offer.per_s = {one.per_s, one.per_s, one.per_s};
  offer.efficiency = {efficiency, efficiency, efficiency};
  return offer;
}

// Explains the rows of a rehearsal.
std::string rows_of(const Forecast& f) {
  const auto count = [&](Evidence evidence) {
    return std::ranges::count_if(f.offers, [&](const Offer& offer) {
      return offer.refused.empty() && offer.evidence == evidence;
    });
  };
  if (count(Evidence::kRehearsed) > 0 && count(Evidence::kPredicted) == 0)
    return fmt::format(
        "Rehearsed rows: ranks of that many ran here, and their messages took the times of {}.",
        f.cluster);
  if (count(Evidence::kRehearsed) == 0)
    return fmt::format(
        "Predicted rows: the steps of a rehearsal, replayed with the times of collectives on {}.",
        f.cluster);
  return fmt::format(
      "Rehearsed row: ranks of that many ran here, and their collectives took the times of {}. "
      "Predicted rows: their steps, replayed.",
      f.cluster);
}

std::string stragglers_in(const Forecast& f) {
  const double slower = straggler_factor(f.spread, f.offers.back().devices) - 1;
  if (slower < 0.0005) return "";
  return fmt::format(
      " They include the wait for the slowest of {}: steps vary by {} here, which costs {}.",
      f.offers.back().devices, format_percent(f.spread), format_percent(slower));
}

std::string footnote(const Forecast& f) {
  const Offer& last = f.offers.back();
  const RungUsed rung = rung_used(known_rates(f), last.devices, f.options.devices_per_node);
  if (!f.basis.empty())
    return fmt::format(
        "Predicted rows: the step of one GPU with the times of {}, not from a run. Their intervals "
        "are as wide as {} published curves of weak scaling and the rates of one GPU spread.",
        f.cluster, rung.curves);
  if (!f.cluster.empty())
    return fmt::format(
        "{}{} The intervals are as wide as {} published curves of weak scaling spread{}. {}",
        rows_of(f), stragglers_in(f), rung.curves,
        f.strong ? "; none of strong scaling was compared" : "",
        f.noun == kGpuNoun ? "No rehearsal was compared with a real run on GPUs yet."
                           : "On CPUs, the cores that collectives use are missing in a rehearsal.");
  return fmt::format(
      "Predicted rows: from the measured rates and {} published curves of weak scaling from {} "
      "sources, not from a run. {} {}s per node (--devices-per-node).",
      rung.curves, rung.sources, f.options.devices_per_node, f.noun);
}

// y(n) as the replay has it, from the measured loss at the largest measured number on.
double replayed_loss(const Rehearsed& r, const std::vector<RateAt>& measured, int devices) {
  const double there = logged_seconds(r.log);
  const auto loss = [&](int n) {
    return -std::log(r.efficiency) + std::log(replayed_seconds(r.log, r.cluster, n) / there);
  };
  const int last = measured.back().devices;
  const auto slowest = [&](int n) { return straggler_factor(r.spread, n); };
  if (last == 1 || !r.replayable) return loss(devices) + std::log(slowest(devices));
  return -std::log(relative_efficiency(measured.front(), measured.back())) + loss(devices) -
         loss(last) + std::log(slowest(devices) / slowest(last));
}

// True if the steps of the log are replayed for that number of devices.
bool replays(const Rehearsed& r, int devices) {
  return r.replayable || (r.other_cluster && devices == r.log.world && !r.log.steps.empty());
}

// Why nothing is known of that number of devices; empty if something is.
std::string refusal_of(const Rehearsed& r, int devices) {
  if (const std::string why = r.cluster.refusal(devices); !why.empty()) return why;
  if (replays(r, devices)) return replay_refusal(r.log, devices);
  if (const auto failed = r.failed.find(devices); failed != r.failed.end()) return failed->second;
  if (r.other_cluster || !r.at.contains(devices))
    return "no other run says how the work divides; rehearse this number on this cluster";
  return "";
}

Offer offer_on(const Forecast& f, int devices, const std::optional<Rehearsed>& r) {
  const int node = f.options.devices_per_node;
  if (!r) return {predict(f.measured, devices, node), Evidence::kPredicted};
  Offer offer;
  offer.devices = devices;
  offer.refused = refusal_of(*r, devices);
  if (!offer.refused.empty()) return offer;
  const double loss =
      replays(*r, devices) ? replayed_loss(*r, f.measured, devices) : -std::log(r->at.at(devices));
  const bool ran = !r->other_cluster && (!r->replayable || devices == r->log.world);
  return {predict(f.measured, devices, node, loss),
          ran ? Evidence::kRehearsed : Evidence::kPredicted};
}

std::string hours_text(double hours) { return format_seconds(hours * 3600); }

bool has_modes(const Forecast& f) {
  return std::ranges::any_of(f.offers, [](const Offer& offer) { return !offer.mode.empty(); });
}

bool asked_slurm(const Forecast& f) {
  return std::ranges::any_of(
      f.offers, [](const Offer& offer) { return offer.wait_hours || !offer.no_start.empty(); });
}

std::vector<std::string> cells_of(const Forecast& f, const Offer& offer) {
  const bool known = offer.refused.empty(), predicted = known && !offer.is_measured();
  std::vector<std::string> cells = {
      std::to_string(offer.devices),
      known ? name_of(offer.evidence) : "none",
      known ? format_count(offer.per_s.value) : "-",
      predicted
          ? fmt::format("{} to {}", format_count(offer.per_s.low), format_count(offer.per_s.high))
          : "",
      known ? format_ratio(offer.efficiency.value) : "-",
      predicted ? interval(offer.efficiency) : ""};
  if (has_modes(f)) cells.insert(cells.begin() + 1, offer.mode);
  if (!f.options.samples) return cells;
  const Range time = known ? hours(offer, *f.options.samples) : Range();
  cells.push_back(known ? hours_text(time.value) : "-");
  cells.push_back(predicted ? fmt::format("{} to {}", hours_text(time.low), hours_text(time.high))
                            : "");
  cells.push_back(known ? format_hours(device_hours(offer, *f.options.samples).value) : "-");
  if (!asked_slurm(f)) return cells;
  cells.push_back(offer.wait_hours ? hours_text(*offer.wait_hours) : "-");
  cells.push_back(offer.wait_hours ? hours_text(*offer.wait_hours + time.value) : "-");
  return cells;
}

struct Fastest {
  double per_s = 0, wait_fraction = 0;  // NaN: unknown
};

// Devices of a node share its cores. If more of them wait longer for data, the loaders are at the
// node's limit. If all wait as long, each has too few workers.
void refuse_if_input_bound(const std::map<int, Fastest>& by_devices) {
  const auto& [least, at_least] = *by_devices.begin();
  const auto& [most, at_most] = *by_devices.rbegin();
  if (!(at_most.wait_fraction > kInputBound &&
        at_most.wait_fraction > kMoreWait * at_least.wait_fraction))
    return;
  throw InputError(fmt::format(
      "training waits {} of the time for data on {} devices, and {} on {}: the loaders are at the "
      "limit of this node, and more devices on it change nothing. howmany workers measures them",
      format_percent(at_most.wait_fraction), most, format_percent(at_least.wait_fraction), least));
}

}  // namespace

std::vector<RateAt> parse_rates(const std::string& text) {
  std::vector<RateAt> rates;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    const std::string part = text.substr(at, end - at);
    const size_t equals = std::min(part.find('='), part.size());
    RateAt one;
    if (equals == part.size() || !parse(std::string_view(part).substr(0, equals), one.devices) ||
        !parse(std::string_view(part).substr(equals + 1), one.per_s) || one.devices < 1 ||
        one.devices > kMostPredicted)
      throw InputError(fmt::format("--rates: \"{}\" is not N=RATE, such as 1=100,2=190",
                                   printable(part.substr(0, 60))));
    rates.push_back(one);
    at = end + 1;
  }
  std::ranges::sort(rates, {}, &RateAt::devices);
  return rates;
}

Trained trained_in(const Summary& summary, const std::optional<Rehearsed>& rehearsed) {
  Trained trained;
  std::map<int, Fastest> best;
  for (const Measurement& m : summary.measurements) {
    const auto rate = m.metrics.find(metric::kSamplesPerS);
    int devices = 0;
    if (m.suite != "speedup" || rate == m.metrics.end() || !is_usable(m) ||
        !(rate->second.value > 0) || !parse(parameter_of(m, parameter::kDevices), devices))
      continue;
    if (trained.what.empty()) trained.what = parameter_of(m, parameter::kModel);
    if (parameter_of(m, parameter::kModel) != trained.what) continue;
    refuse_if_unlike_the_curves(m, rehearsed);
    trained.strong = parameter_of(m, parameter::kScaling) == "strong";
    if (rate->second.value > best[devices].per_s)
      best[devices] = {rate->second.value, value_of(m, metric::kDataWaitFraction)};
  }
  if (best.empty()) throw InputError("the run holds no rate of training to predict from");
  refuse_if_input_bound(best);
  for (const auto& [devices, fastest] : best) trained.rates.push_back({devices, fastest.per_s});
  return trained;
}

std::vector<int> counts_up_to(int most, int measured) {
  std::vector<int> counts;
  for (int n = 2; n < most; n *= 2)
    if (n > measured) counts.push_back(n);
  counts.push_back(most);
  return counts;
}

std::vector<RateAt> known_rates(const Forecast& f) {
  if (f.basis.empty()) return f.measured;
  return {{f.offers.front().devices, f.offers.front().per_s.value}};
}

Forecast forecast(const Trained& trained, const ForecastOptions& options,
                  const std::optional<Rehearsed>& rehearsed) {
  const std::vector<RateAt>& measured = trained.rates;
  if (measured.empty()) throw InputError("no measured rate to predict from");
  if (!options.samples && (options.finish_within_hours || options.budget_device_hours))
    throw InputError("a limit of time or device-hours needs --samples");
  Forecast f;
  f.what = trained.what;
  f.strong = trained.strong;
  f.measured = measured;
  f.options = options;
  if (rehearsed) f.cluster = rehearsed->cluster.name;
  if (rehearsed) f.spread = rehearsed->spread;
  if (rehearsed && rehearsed->cluster.device == kCpuDevice) f.noun = "CPU device";
  const int last = measured.back().devices;
  if (f.options.up_to == 0)
    f.options.up_to =
        std::max(std::min(kUsualFactor * last, kMostPredicted), options.devices_per_node);
  for (const RateAt& one : measured) f.offers.push_back(measured_offer(measured.front(), one));
  for (const int n : counts_up_to(f.options.up_to, last))
    f.offers.push_back(offer_on(f, n, rehearsed));
  decide(f);
  return f;
}

std::string render(const Forecast& f, bool color) {
  using Style = Table::Style;
  std::string text;
  for (const std::string& sentence : f.sentences) text += wrapped(sentence, kTextWidth, 2) + "\n";
  std::vector<Table::Column> columns = {{f.noun + "s"}, {"evidence", Table::Align::kLeft},
                                        {"samples/s"},  {"90 % interval"},
                                        {"efficiency"}, {"90 % interval"}};
  if (has_modes(f)) columns.insert(columns.begin() + 1, {"mode", Table::Align::kLeft});
  if (f.options.samples)
    columns.insert(
        columns.end(),
        {{format_count(*f.options.samples) + " samples"}, {"90 % interval"}, {"device-hours"}});
  if (asked_slurm(f)) columns.insert(columns.end(), {{"wait (Slurm)"}, {"until the end"}});
  Table table(columns);
  for (const Offer& offer : f.offers)
    table.add(cells_of(f, offer), !offer.refused.empty()           ? Style::kDim
                                  : offer.devices == f.recommended ? Style::kBold
                                                                   : Style::kPlain);
  text += "\n" + table.text(color) + "\n";
  for (const Offer& offer : f.offers)
    if (!offer.refused.empty())
      text += wrapped(fmt::format("{}: {}.", number(offer.devices, f.noun), offer.refused),
                      kTextWidth, 2) +
              "\n";
  for (const Offer& offer : f.offers)
    if (!offer.no_start.empty())
      text += wrapped(fmt::format("{}: Slurm would not start it: {}.",
                                  number(offer.devices, f.noun), without_full_stop(offer.no_start)),
                      kTextWidth, 2) +
              "\n";
  return text + wrapped(footnote(f), kTextWidth, 2) + "\n";
}

}  // namespace howmany::reports
