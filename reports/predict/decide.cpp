// SPDX-License-Identifier: Apache-2.0
#include "reports/predict/decide.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/text/format.h"

namespace howmany::reports {
namespace {

constexpr double kSecondsPerHour = 3600;
constexpr double kRises = 1.005;  // an efficiency that does not print as 1.00

std::string to(const std::string& low, const std::string& high) {
  return fmt::format("90 % interval {} to {}", low, high);
}

class Decision {
 public:
  explicit Decision(Forecast& f) : f_(f), o_(f.options) {}

  void write() {
    const ForecastRow* const chosen = choose(&Range::low, &Range::high);
    f_.recommended.reset();
    f_.sentences.clear();
    if (chosen != nullptr) f_.recommended = chosen->devices;
    f_.sentences.push_back(chosen == nullptr ? none() : answer(*chosen));
    if (chosen != nullptr && o_.samples) f_.sentences.push_back(cost(*chosen));
    add_hopeful(chosen);
    if (!f_.basis.empty()) f_.sentences.push_back(f_.basis);
    add_rising_rate();
    add_next_run();
  }

 private:
  // The ends of the intervals that must meet the options.
  bool meets(const ForecastRow& row, double Range::*rate_end, double Range::*cost_end) const {
    if (!row.refused.empty()) return false;
    const bool in_budget = !o_.budget_device_hours ||
                           device_hours(row, *o_.samples).*cost_end <= *o_.budget_device_hours;
    if (o_.finish_within_hours)
      return in_budget && hours(row, *o_.samples).*cost_end <= *o_.finish_within_hours;
    return in_budget && row.efficiency.*rate_end >= o_.min_efficiency;
  }

  // If nothing was measured, one device is not among the answers: its efficiency is 1 by
  // definition.
  const ForecastRow* choose(double Range::*rate_end, double Range::*cost_end) const {
    const ForecastRow* chosen = nullptr;
    for (const ForecastRow& row : f_.rows) {
      if (!f_.basis.empty() && row.devices == 1) continue;
      if (!meets(row, rate_end, cost_end)) continue;
      chosen = &row;
      if (o_.finish_within_hours) break;
    }
    return chosen;
  }

  std::string target() const {
    std::string text = o_.finish_within_hours
                           ? fmt::format("to finish within {}",
                                         format_seconds(*o_.finish_within_hours * kSecondsPerHour))
                           : fmt::format("of efficiency {}", format_ratio(o_.min_efficiency));
    if (o_.budget_device_hours)
      text += fmt::format(" within {} device-hours", format_hours(*o_.budget_device_hours));
    return text;
  }

  std::string none() const {
    if (std::ranges::none_of(f_.rows, [](const ForecastRow& row) { return row.refused.empty(); }))
      return fmt::format("No answer: nothing is predicted on up to {}: {}.",
                         number(f_.rows.back().devices, f_.noun), f_.rows.back().refused);
    return fmt::format("No answer: no number of {}s up to {} is sure {}.", f_.noun,
                       f_.rows.back().devices, target());
  }

  std::string with_mode(const ForecastRow& row) const {
    const std::string devices = number(row.devices, f_.noun);
    return row.mode.empty() ? devices : fmt::format("{} with {}", devices, row.mode);
  }

  std::string answer(const ForecastRow& chosen) const {
    const std::string start = fmt::format("Ask for {}", with_mode(chosen));
    if (chosen.is_measured())
      return fmt::format("{}, as measured: {} is sure {}.", start,
                         o_.finish_within_hours ? "the smallest number that" : "no larger number",
                         target());
    const int first = f_.rows.front().devices;
    const double factor = static_cast<double>(chosen.devices) / first;
    const Range& e = chosen.efficiency;
    return fmt::format(
        "{}: {} is predicted to run {}x as fast as on {} ({}). Efficiency {} to {}, {}.", start,
        f_.what.empty() ? "training" : f_.what, format_ratio(factor * e.value), first,
        to(format_ratio(factor * e.low), format_ratio(factor * e.high)), format_ratio(e.low),
        format_ratio(e.high),
        o_.finish_within_hours ? "the smallest number sure " + target()
                               : "target " + format_ratio(o_.min_efficiency));
  }

  std::string cost(const ForecastRow& chosen) const {
    const Range time = hours(chosen, *o_.samples), device = device_hours(chosen, *o_.samples);
    const auto seconds = [](double h) { return format_seconds(h * kSecondsPerHour); };
    const std::string start =
        fmt::format("{} samples take {}", format_count(*o_.samples), seconds(time.value));
    if (chosen.is_measured())
      return fmt::format("{} there, {} device-hours{}.", start, format_hours(device.value),
                         price(device.value));
    return fmt::format("{} there ({}), {} device-hours ({}){}.", start,
                       to(seconds(time.low), seconds(time.high)), format_hours(device.value),
                       to(format_hours(device.low), format_hours(device.high)),
                       price(device.value));
  }

  std::string price(double device_hours) const {
    if (!o_.price) return "";
    return fmt::format(", {} at {:g} a device-hour", format_count(device_hours * *o_.price),
                       *o_.price);
  }

  // A number that meets the options at the predicted value, but not at the end of its interval.
  void add_hopeful(const ForecastRow* chosen) {
    const ForecastRow* const may = choose(&Range::value, &Range::value);
    if (may == nullptr || may == chosen) return;
    f_.sentences.push_back(
        fmt::format("{} may do: efficiency {} predicted ({}).", with_mode(*may),
                    format_ratio(may->efficiency.value),
                    to(format_ratio(may->efficiency.low), format_ratio(may->efficiency.high))));
  }

  void add_rising_rate() {
    const auto rises = [&](const RateAt& one) {
      return relative_efficiency(f_.measured.front(), one) > kRises;
    };
    const auto found = std::ranges::find_if(f_.measured, rises);
    if (found == f_.measured.end()) return;
    const int first = f_.measured.front().devices;
    f_.sentences.push_back(fmt::format(
        "The rate per {} is higher on {} than on {}: the rate on {} may be too low. Measure it "
        "again. No efficiency above 1 is predicted.",
        f_.noun, found->devices, first, first));
  }

  void add_next_run() {
    const int most = f_.rows.back().devices;
    if (!f_.next.empty()) {
      f_.sentences.push_back(f_.next);
      return;
    }
    if (!f_.basis.empty()) {
      f_.sentences.push_back(fmt::format(
          "Run your own script on one {} next: howmany gpus --up-to {} --cluster {} -- python "
          "train.py",
          f_.noun, most, f_.cluster));
      return;
    }
    const auto next = next_run(f_.measured, most, o_.devices_per_node);
    if (!next) return;
    f_.sentences.push_back(fmt::format(
        "Measure on {} next: the interval of the efficiency at {} would then be about {} to {}.",
        number(next->devices, f_.noun), most, format_ratio(next->efficiency.low),
        format_ratio(next->efficiency.high)));
  }

  Forecast& f_;
  const ForecastOptions& o_;
};

}  // namespace

Range hours(const ForecastRow& row, double samples) {
  const Range& rate = row.per_s;
  const double all = samples / kSecondsPerHour;
  return {all / rate.value, all / rate.high, all / rate.low};
}

Range device_hours(const ForecastRow& row, double samples) {
  const Range time = hours(row, samples);
  const double n = row.devices;
  return {n * time.value, n * time.low, n * time.high};
}

void decide(Forecast& forecast) { Decision(forecast).write(); }

}  // namespace howmany::reports
