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

void refuse_if_unlike_the_curves(const Measurement& m, const std::optional<ClusterSteps>& steps) {
  const bool cpu = steps && steps->cluster.device == kCpuDevice;
  if (!cpu && parameter_of(m, "device_list").starts_with("cpu"))
    throw InputError(
        "the run was measured on CPU devices, and the predictions are of GPUs: give --rates, a run "
        "on GPUs, or the --cluster of CPUs that it was for");
  if (const std::string scaling = parameter_of(m, parameter::kScaling);
      scaling == "neither" || (scaling == "strong" && !steps))
    throw InputError(
        fmt::format("the run has {} scaling, and predictions are compared with weak scaling only: "
                    "keep the batch per device",
                    scaling == "strong" ? "strong" : "neither weak nor strong"));
}

std::string interval(const Range& range) {
  return fmt::format("{} to {}", format_ratio(range.low), format_ratio(range.high));
}

ForecastRow measured_row(const RateAt& first, const RateAt& one) {
  const double efficiency = relative_efficiency(first, one);
  ForecastRow row;
  row.devices = one.devices;
  row.evidence = Evidence::kMeasured;
  row.per_s = {one.per_s, one.per_s, one.per_s};
  row.efficiency = {efficiency, efficiency, efficiency};
  return row;
}

// Explains the rows of rehearsed or computed steps.
std::string origin_of_rows(const Forecast& f) {
  if (f.computed)
    return fmt::format(
        "Predicted rows: the mode's own code, run without computing, with the step of one {} and "
        "the times of {}.",
        f.noun, f.cluster);
  const auto count = [&](Evidence evidence) {
    return std::ranges::count_if(f.rows, [&](const ForecastRow& row) {
      return row.refused.empty() && row.evidence == evidence;
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
  const double slower = straggler_factor(f.spread, f.rows.back().devices) - 1;
  if (slower < 0.0005) return "";
  return fmt::format(
      " They include the wait for the slowest of {}: steps vary by {} here, which costs {}.",
      f.rows.back().devices, format_percent(f.spread), format_percent(slower));
}

std::string footnote(const Forecast& f) {
  const ForecastRow& last = f.rows.back();
  const RungUsed rung = rung_used(known_rates(f), last.devices, f.options.devices_per_node);
  if (!f.basis.empty())
    return fmt::format(
        "Predicted rows: the step of one GPU with the times of {}, not from a run. Their intervals "
        "are as wide as {} of weak scaling and the rates of one GPU spread.",
        f.cluster,
        last.devices <= f.options.devices_per_node
            ? fmt::format("{} published rates", kComputedRows)
            : fmt::format("{} published curves", rung.curves));
  if (!f.cluster.empty())
    return fmt::format(
        "{}{} The intervals are as wide as {} published curves of weak scaling spread{}. {}",
        origin_of_rows(f), stragglers_in(f), rung.curves,
        f.strong ? "; none of strong scaling was compared" : "",
        f.computed ? "No such row was compared with a real run yet."
        : f.noun == kGpuNoun
            ? "No rehearsal was compared with a real run on GPUs yet."
            : "On CPUs, the cores that collectives use are missing in a rehearsal.");
  const int node = f.options.devices_per_node;
  return fmt::format(
      "Predicted rows: from the measured rates and {} published curves of weak scaling from {}, "
      "not "
      "from a run. {} per node (--devices-per-node).{}",
      rung.curves, number(rung.sources, "source"), number(node, f.noun),
      holds_slow_networks(f.measured, last.devices, node)
          ? " The network between nodes is not known, so the intervals beyond a node hold slow "
            "ones."
          : "");
}

// y(n) as the replay has it, from the measured loss at the largest measured number on.
double replayed_loss(const ClusterSteps& r, const std::vector<RateAt>& measured, int devices) {
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

// y(n) as rehearsed or computed. Computed, it grows from the measured loss at the largest measured
// number on, if the mode has a step there.
double loss_by_devices(const ClusterSteps& s, const std::vector<RateAt>& measured, int devices) {
  const double loss = -std::log(s.efficiency_by_devices.at(devices));
  const auto last = s.efficiency_by_devices.find(measured.back().devices);
  if (!s.computed || last == s.efficiency_by_devices.end()) return loss;
  return loss + std::log(last->second) -
         std::log(relative_efficiency(measured.front(), measured.back()));
}

// True if the steps of the log are replayed for that number of devices.
bool replays(const ClusterSteps& r, int devices) {
  return r.replayable || (r.other_cluster && devices == r.log.world && !r.log.steps.empty());
}

// Why nothing is known of that number of devices; empty if something is.
std::string refusal_of(const ClusterSteps& r, int devices) {
  if (const std::string why = r.cluster.refusal(devices); !why.empty()) return why;
  if (replays(r, devices)) return replay_refusal(r.log, devices);
  const auto failure = r.failure_by_devices.find(devices);
  if (failure != r.failure_by_devices.end()) return failure->second;
  if (r.other_cluster || !r.efficiency_by_devices.contains(devices))
    return "no other run says how the work divides; rehearse this number on this cluster";
  return "";
}

ForecastRow row_on(const Forecast& f, int devices, const std::optional<ClusterSteps>& r) {
  const int node = f.options.devices_per_node;
  if (!r) return {predict(f.measured, devices, node), Evidence::kPredicted};
  ForecastRow row;
  row.devices = devices;
  row.refused = refusal_of(*r, devices);
  if (!row.refused.empty()) return row;
  const double loss = replays(*r, devices) ? replayed_loss(*r, f.measured, devices)
                                           : loss_by_devices(*r, f.measured, devices);
  const bool ran = !r->computed && !r->other_cluster && (!r->replayable || devices == r->log.world);
  return {predict(f.measured, devices, node, loss),
          ran ? Evidence::kRehearsed : Evidence::kPredicted};
}

std::string hours_text(double hours) { return format_seconds(hours * 3600); }

bool has_modes(const Forecast& f) {
  return std::ranges::any_of(f.rows, [](const ForecastRow& row) { return !row.mode.empty(); });
}

std::vector<std::string> cells_of(const Forecast& f, const ForecastRow& row) {
  const bool known = row.refused.empty(), predicted = known && !row.is_measured();
  std::vector<std::string> cells = {
      std::to_string(row.devices),
      known ? name_of(row.evidence) : "none",
      known ? format_count(row.per_s.value) : "-",
      predicted ? fmt::format("{} to {}", format_count(row.per_s.low), format_count(row.per_s.high))
                : "",
      known ? format_ratio(row.efficiency.value) : "-",
      predicted ? interval(row.efficiency) : ""};
  if (has_modes(f)) cells.insert(cells.begin() + 1, row.mode);
  if (!f.options.samples) return cells;
  const Range time = known ? hours(row, *f.options.samples) : Range();
  cells.push_back(known ? hours_text(time.value) : "-");
  cells.push_back(predicted ? fmt::format("{} to {}", hours_text(time.low), hours_text(time.high))
                            : "");
  cells.push_back(known ? format_hours(device_hours(row, *f.options.samples).value) : "-");
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

Trained trained_in(const Summary& summary, const std::optional<ClusterSteps>& steps) {
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
    refuse_if_unlike_the_curves(m, steps);
    trained.strong = parameter_of(m, parameter::kScaling) == "strong";
    if (rate->second.value > best[devices].per_s)
      best[devices] = {rate->second.value, value_of(m, metric::kDataWaitFraction)};
  }
  if (best.empty()) throw InputError("the run holds no rate of training to predict from");
  refuse_if_input_bound(best);
  for (const auto& [devices, fastest] : best) trained.rates.push_back({devices, fastest.per_s});
  return trained;
}

int up_to(const ForecastOptions& options, int measured) {
  if (options.up_to > 0) return options.up_to;
  return std::max(std::min(kUsualFactor * measured, kMaxPredicted), options.devices_per_node);
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
  return {{f.rows.front().devices, f.rows.front().per_s.value}};
}

void check(const ForecastOptions& options, bool of_batches) {
  if (!options.samples && (options.finish_within_hours || options.budget_device_hours))
    throw InputError("a limit of time or device-hours needs --samples");
  if (options.samples && of_batches)
    throw InputError("--samples needs samples per second, not seconds per step");
}

Forecast forecast(const Trained& trained, const ForecastOptions& options,
                  const std::optional<ClusterSteps>& steps) {
  const std::vector<RateAt>& measured = trained.rates;
  if (measured.empty()) throw InputError("no measured rate to predict from");
  check(options, trained.of_batches);
  Forecast f;
  f.what = trained.what;
  f.strong = trained.strong;
  f.of_batches = trained.of_batches;
  f.measured = measured;
  f.options = options;
  if (steps) f.cluster = steps->cluster.name;
  if (steps) f.computed = steps->computed;
  if (steps) f.spread = steps->spread;
  if (steps && steps->cluster.device == kCpuDevice) f.noun = "CPU device";
  const int last = measured.back().devices;
  f.options.up_to = up_to(options, last);
  for (const RateAt& one : measured) f.rows.push_back(measured_row(measured.front(), one));
  for (const int n : counts_up_to(f.options.up_to, last)) f.rows.push_back(row_on(f, n, steps));
  decide(f);
  return f;
}

std::string render(const Forecast& f, bool color) {
  using Style = Table::Style;
  std::string text;
  for (const std::string& sentence : f.sentences) text += wrapped(sentence, kTextWidth, 2) + "\n";
  std::vector<Table::Column> columns = {{f.noun + "s"},
                                        {"evidence", Table::Align::kLeft},
                                        {f.of_batches ? "GPU batches/s" : "samples/s"},
                                        {"90 % interval"},
                                        {"efficiency"},
                                        {"90 % interval"}};
  if (has_modes(f)) columns.insert(columns.begin() + 1, {"mode", Table::Align::kLeft});
  if (f.options.samples)
    columns.insert(
        columns.end(),
        {{format_count(*f.options.samples) + " samples"}, {"90 % interval"}, {"device-hours"}});
  Table table(columns);
  for (const ForecastRow& row : f.rows)
    table.add(cells_of(f, row), !row.refused.empty()           ? Style::kDim
                                : row.devices == f.recommended ? Style::kBold
                                                               : Style::kPlain);
  text += "\n" + table.text(color) + "\n";
  for (const ForecastRow& row : f.rows)
    if (!row.refused.empty())
      text +=
          wrapped(fmt::format("{}: {}.", number(row.devices, f.noun), row.refused), kTextWidth, 2) +
          "\n";
  return text + wrapped(footnote(f), kTextWidth, 2) + "\n";
}

}  // namespace howmany::reports
