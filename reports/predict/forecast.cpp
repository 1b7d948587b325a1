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

namespace howmany::reports {
namespace {

constexpr int kUsualFactor = 4;  // of the largest measured number

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

void refuse_if_unlike_the_curves(const Measurement& m) {
  if (parameter_of(m, "device_list").starts_with("cpu"))
    throw InputError(
        "the run was measured on CPU devices, and the predictions are of GPUs: give --rates, or a "
        "run on GPUs");
  if (const std::string scaling = parameter_of(m, parameter::kScaling);
      scaling == "strong" || scaling == "neither")
    throw InputError(
        fmt::format("the run has {} scaling, and predictions are compared with weak scaling only: "
                    "keep the batch per device",
                    scaling == "strong" ? "strong" : "neither weak nor strong"));
}

std::vector<int> counts_up_to(int most, int measured) {
  std::vector<int> counts;
  for (int n = 2; n < most; n *= 2)
    if (n > measured) counts.push_back(n);
  counts.push_back(most);
  return counts;
}

std::string interval(const Range& range) {
  return fmt::format("{} to {}", format_ratio(range.low), format_ratio(range.high));
}

Offer measured_offer(const RateAt& first, const RateAt& one) {
  const double efficiency = relative_efficiency(first, one);
  Offer offer;
  offer.devices = one.devices;
  offer.measured = true;
  offer.per_s = {one.per_s, one.per_s, one.per_s};
  offer.efficiency = {efficiency, efficiency, efficiency};
  return offer;
}

nlohmann::ordered_json row_of(const Forecast& f, const Offer& offer) {
  nlohmann::ordered_json row = {{"devices", offer.devices}};
  if (!offer.refused.empty()) {
    row["refused"] = offer.refused;
    return row;
  }
  const auto add = [&](const std::string& name, const Range& range, const std::string& end) {
    row[name] = range.value;
    if (offer.measured) return;
    row[end + "low"] = range.low;
    row[end + "high"] = range.high;
  };
  add("samples_per_s", offer.per_s, "");
  add("efficiency", offer.efficiency, "efficiency_");
  if (f.options.samples) {
    add("hours", hours(offer, *f.options.samples), "hours_");
    add("device_hours", device_hours(offer, *f.options.samples), "device_hours_");
  }
  if (!offer.measured)
    row["rung"] = rung_used(f.measured, offer.devices, f.options.devices_per_node).name;
  return row;
}

std::string basis(const Forecast& f) {
  const Offer& last = f.offers.back();
  const RungUsed rung = rung_used(f.measured, last.devices, f.options.devices_per_node);
  return fmt::format(
      "Predicted rows: from the measured rates and {} published curves of weak scaling from {} "
      "sources, not from a run. {} GPUs per node (--devices-per-node).",
      rung.curves, rung.sources, f.options.devices_per_node);
}

std::string hours_text(double hours) { return format_seconds(hours * 3600); }

std::vector<std::string> cells_of(const Forecast& f, const Offer& offer) {
  const bool known = offer.refused.empty(), predicted = known && !offer.measured;
  std::vector<std::string> cells = {
      std::to_string(offer.devices),
      offer.measured ? "measured"
      : known        ? "predicted"
                     : "none",
      known ? format_count(offer.per_s.value) : "-",
      predicted
          ? fmt::format("{} to {}", format_count(offer.per_s.low), format_count(offer.per_s.high))
          : "",
      known ? format_ratio(offer.efficiency.value) : "-",
      predicted ? interval(offer.efficiency) : ""};
  if (!f.options.samples) return cells;
  const Range time = known ? hours(offer, *f.options.samples) : Range();
  cells.push_back(known ? hours_text(time.value) : "-");
  cells.push_back(predicted ? fmt::format("{} to {}", hours_text(time.low), hours_text(time.high))
                            : "");
  cells.push_back(known ? format_hours(device_hours(offer, *f.options.samples).value) : "-");
  return cells;
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

std::vector<RateAt> rates_of(const Summary& summary, std::string& what) {
  std::map<int, double> best;
  for (const Measurement& m : summary.measurements) {
    const auto rate = m.metrics.find(metric::kSamplesPerS);
    int devices = 0;
    if (m.suite != "speedup" || rate == m.metrics.end() || !is_usable(m) ||
        !(rate->second.value > 0) || !parse(parameter_of(m, parameter::kDevices), devices))
      continue;
    if (what.empty()) what = parameter_of(m, parameter::kModel);
    if (parameter_of(m, parameter::kModel) != what) continue;
    refuse_if_unlike_the_curves(m);
    best[devices] = std::max(best[devices], rate->second.value);
  }
  if (best.empty()) throw InputError("the run holds no rate of training to predict from");
  std::vector<RateAt> rates;
  for (const auto& [devices, per_s] : best) rates.push_back({devices, per_s});
  return rates;
}

Forecast forecast(const std::string& what, const std::vector<RateAt>& measured,
                  const ForecastOptions& options) {
  if (measured.empty()) throw InputError("no measured rate to predict from");
  if (!options.samples && (options.finish_within_hours || options.budget_device_hours))
    throw InputError("a limit of time or device-hours needs --samples");
  Forecast f;
  f.what = what;
  f.measured = measured;
  f.options = options;
  const int last = measured.back().devices;
  if (f.options.up_to == 0)
    f.options.up_to =
        std::max(std::min(kUsualFactor * last, kMostPredicted), options.devices_per_node);
  for (const RateAt& one : measured) f.offers.push_back(measured_offer(measured.front(), one));
  for (const int n : counts_up_to(f.options.up_to, last))
    f.offers.push_back({predict(measured, n, options.devices_per_node), false});
  decide(f);
  return f;
}

nlohmann::ordered_json to_json(const Forecast& f) {
  nlohmann::ordered_json measured = nlohmann::ordered_json::array(), predicted = measured;
  for (const Offer& offer : f.offers)
    (offer.measured ? measured : predicted).push_back(row_of(f, offer));
  return {{"what", f.what},
          {"recommended", f.recommended ? nlohmann::json(*f.recommended) : nlohmann::json(nullptr)},
          {"because", f.sentences.front()},
          {"min_efficiency", f.options.min_efficiency},
          {"devices_per_node", f.options.devices_per_node},
          {"interval", kPredictionCoverage},
          {"measured", measured},
          {"predicted", predicted}};
}

std::string render(const Forecast& f, bool color) {
  using Style = Table::Style;
  std::string text;
  for (const std::string& sentence : f.sentences) text += wrapped(sentence, kTextWidth, 2) + "\n";
  std::vector<Table::Column> columns = {{"GPUs"},       {"evidence", Table::Align::kLeft},
                                        {"samples/s"},  {"90 % interval"},
                                        {"efficiency"}, {"90 % interval"}};
  if (f.options.samples)
    columns.insert(
        columns.end(),
        {{format_count(*f.options.samples) + " samples"}, {"90 % interval"}, {"device-hours"}});
  Table table(columns);
  for (const Offer& offer : f.offers)
    table.add(cells_of(f, offer), !offer.refused.empty()           ? Style::kDim
                                  : offer.devices == f.recommended ? Style::kBold
                                                                   : Style::kPlain);
  text += "\n" + table.text(color) + "\n";
  for (const Offer& offer : f.offers)
    if (!offer.refused.empty())
      text +=
          wrapped(fmt::format("{} GPUs: {}.", offer.devices, offer.refused), kTextWidth, 2) + "\n";
  return text + wrapped(basis(f), kTextWidth, 2) + "\n";
}

}  // namespace howmany::reports
