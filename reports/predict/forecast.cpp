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

namespace howmany::reports {
namespace {

constexpr int kUsualFactor = 4;  // of the largest measured number

template <typename T>
bool parse(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

std::string parameter_of(const Measurement& m, const char* name) {
  const auto found = m.parameters.find(name);
  return found == m.parameters.end() ? "" : found->second;
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

double efficiency_of(const Forecast& f, const RateAt& one) {
  const RateAt& first = f.measured.front();
  return one.per_s / one.devices / (first.per_s / first.devices);
}

std::string subject(const Forecast& f) { return f.what.empty() ? "training" : f.what; }

std::string speedup_text(const Forecast& f, const Predicted& p) {
  const double factor = static_cast<double>(p.devices) / f.measured.front().devices;
  return fmt::format("{}x as fast as on {} (90 % interval {} to {})",
                     format_ratio(factor * p.efficiency.value), f.measured.front().devices,
                     format_ratio(factor * p.efficiency.low),
                     format_ratio(factor * p.efficiency.high));
}

const Predicted* largest(const Forecast& f, double Range::*bound) {
  const Predicted* found = nullptr;
  for (const Predicted& p : f.predicted)
    if (p.refused.empty() && p.efficiency.*bound >= f.options.min_efficiency) found = &p;
  return found;
}

std::optional<int> largest_measured(const Forecast& f) {
  std::optional<int> found;
  for (const RateAt& one : f.measured)
    if (efficiency_of(f, one) >= f.options.min_efficiency) found = one.devices;
  return found;
}

void add_answer(Forecast& f) {
  const Predicted* const sure = largest(f, &Range::low);
  const double target = f.options.min_efficiency;
  f.recommended = sure != nullptr ? sure->devices : largest_measured(f);
  if (sure != nullptr) {
    f.sentences.push_back(fmt::format(
        "Ask for {} GPUs: {} is predicted to run {}. Efficiency {} to {}, target {}.",
        sure->devices, subject(f), speedup_text(f, *sure), format_ratio(sure->efficiency.low),
        format_ratio(sure->efficiency.high), format_ratio(target)));
  } else {
    f.sentences.push_back(fmt::format(
        "Ask for {}, as measured: more is not sure to reach the target efficiency of {}.",
        number(*f.recommended, "GPU"), format_ratio(target)));
  }
  const Predicted* const may = largest(f, &Range::value);
  if (may != nullptr && may->devices > *f.recommended)
    f.sentences.push_back(fmt::format(
        "{} may pay: efficiency {} predicted (90 % interval {}).", number(may->devices, "GPU"),
        format_ratio(may->efficiency.value), interval(may->efficiency)));
}

void add_next_run(Forecast& f) {
  const int most = f.predicted.back().devices;
  const auto next = next_run(f.measured, most, f.options.devices_per_node);
  if (!next) return;
  f.sentences.push_back(
      fmt::format("Measure on {} next: the interval at {} would then be about {}.",
                  number(next->devices, "GPU"), most, interval(next->efficiency)));
}

nlohmann::ordered_json row_of(const Predicted& p) {
  if (!p.refused.empty()) return {{"devices", p.devices}, {"refused", p.refused}};
  return {{"devices", p.devices},
          {"samples_per_s", p.per_s.value},
          {"low", p.per_s.low},
          {"high", p.per_s.high},
          {"efficiency", p.efficiency.value},
          {"efficiency_low", p.efficiency.low},
          {"efficiency_high", p.efficiency.high}};
}

std::string basis(const Forecast& f) {
  const Predicted& last = f.predicted.back();
  const RungUsed rung = rung_used(f.measured, last.devices, f.options.devices_per_node);
  return fmt::format(
      "Predicted rows: from the measured rates and {} published curves of weak scaling from {} "
      "sources, not from a run. {} GPUs per node (--devices-per-node).",
      rung.curves, rung.sources, f.options.devices_per_node);
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
  Forecast f;
  f.what = what;
  f.measured = measured;
  f.options = options;
  const int last = measured.back().devices;
  if (f.options.up_to == 0)
    f.options.up_to =
        std::max(std::min(kUsualFactor * last, kMostPredicted), options.devices_per_node);
  for (const int n : counts_up_to(f.options.up_to, last))
    f.predicted.push_back(predict(measured, n, options.devices_per_node));
  add_answer(f);
  add_next_run(f);
  return f;
}

nlohmann::ordered_json to_json(const Forecast& f) {
  nlohmann::ordered_json measured = nlohmann::ordered_json::array(), predicted = measured;
  for (const RateAt& one : f.measured)
    measured.push_back({{"devices", one.devices}, {"samples_per_s", one.per_s}});
  for (const Predicted& p : f.predicted) {
    predicted.push_back(row_of(p));
    predicted.back()["rung"] = rung_used(f.measured, p.devices, f.options.devices_per_node).name;
  }
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
  Table table({{"GPUs"},
               {"evidence", Table::Align::kLeft},
               {"samples/s"},
               {"90 % interval"},
               {"efficiency"},
               {"90 % interval"}});
  for (const RateAt& one : f.measured)
    table.add({std::to_string(one.devices), "measured", format_count(one.per_s), "",
               format_ratio(efficiency_of(f, one)), ""});
  for (const Predicted& p : f.predicted) {
    if (!p.refused.empty()) {
      table.add({std::to_string(p.devices), "none", "-", "", "-", ""}, Style::kDim);
      continue;
    }
    table.add({std::to_string(p.devices), "predicted", format_count(p.per_s.value),
               fmt::format("{} to {}", format_count(p.per_s.low), format_count(p.per_s.high)),
               format_ratio(p.efficiency.value), interval(p.efficiency)},
              p.devices == f.recommended ? Style::kBold : Style::kPlain);
  }
  text += "\n" + table.text(color) + "\n";
  for (const Predicted& p : f.predicted)
    if (!p.refused.empty())
      text += wrapped(fmt::format("{} GPUs: {}.", p.devices, p.refused), kTextWidth, 2) + "\n";
  return text + wrapped(basis(f), kTextWidth, 2) + "\n";
}

}  // namespace howmany::reports
