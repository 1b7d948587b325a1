#include "reports/gpus/advise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/schema/marks.h"
#include "core/base/schema/metrics.h"
#include "core/base/text/format.h"
#include "core/base/text/json.h"
#include "reports/gpus/efficiency.h"
#include "reports/gpus/mode_notes.h"
#include "reports/results/device_kind.h"
#include "reports/results/disturbance.h"

namespace howmany::reports {
namespace {

constexpr double kNoticeableWait = 0.1;  // of a step

enum class Verdict { kPays, kUnsure, kDoesNot };

// The efficiency of devices that are together as fast as one.
double even(int devices) { return devices > 1 ? 1.0 / devices : 0; }

// Several devices must be faster than one, even with a low threshold.
double least_efficiency(int devices, double threshold) {
  return std::max(threshold, even(devices));
}

Verdict verdict(const Point& point, double threshold) {
  const Metric& e = point.efficiency;
  if (!e.low || !e.high) return Verdict::kUnsure;
  const double least = even(point.devices);
  if (*e.low >= threshold && *e.low > least) return Verdict::kPays;
  return *e.high < threshold || *e.high <= least ? Verdict::kDoesNot : Verdict::kUnsure;
}

int integer_parameter(const Measurement& m, const char* key) {
  const auto it = m.parameters.find(key);
  const int value = it == m.parameters.end() ? 0 : std::atoi(it->second.c_str());
  if (value < 1)
    throw InputError(fmt::format("[{}] parameter \"{}\" is missing or below 1", m.name, key));
  return value;
}

std::string needed_parameter(const Measurement& m, const char* key) {
  const auto it = m.parameters.find(key);
  if (it == m.parameters.end()) {
    throw InputError(fmt::format("[{}] parameter \"{}\" is missing", m.name, key));
  }
  return it->second;
}

Metric metric_or_nan(const Measurement& m, const char* key) {
  const auto it = m.metrics.find(key);
  return it == m.metrics.end() ? Metric{std::nan(""), "", {}, {}, 0, ""} : it->second;
}

Point point_of(const Measurement& m, double threshold) {
  Point point;
  point.devices = integer_parameter(m, "devices");
  point.mode = needed_parameter(m, "mode");
  point.backend = needed_parameter(m, "backend");
  point.step_seconds = metric_or_nan(m, metric::kMedianS).value;
  point.samples_per_s = metric_or_nan(m, metric::kSamplesPerS).value;
  point.data_wait_fraction = metric_or_nan(m, metric::kDataWaitFraction).value;
  point.bubble = metric_or_nan(m, metric::kBubbleFraction).value;
  point.theoretical_bubble = metric_or_nan(m, metric::kTheoreticalBubbleFraction).value;
  point.exposed_seconds = metric_or_nan(m, metric::kExposedCommunicationS).value;
  point.ranks = metric_or_nan(m, metric::kRanks).value;
  point.straggler = metric_or_nan(m, metric::kStragglerRank).value;
  point.straggler_extra_seconds = metric_or_nan(m, metric::kStragglerExtraS).value;
  point.peak_bytes = metric_or_nan(m, metric::kPeakBytesPerDevice).value;
  point.busy_elsewhere = metric_or_nan(m, "busy_elsewhere_fraction").value;
  point.speedup = metric_or_nan(m, "speedup");
  point.efficiency = metric_or_nan(m, "efficiency");
  point.flags = m.flags;
  point.valid = std::isfinite(point.efficiency.value) && std::isfinite(point.speedup.value) &&
                !point.has_flag("failed") && !point.has_flag(mark::kOversubscribed);
  const Metric& e = point.efficiency;
  if (e.low && e.high) {
    point.rounds_to_decide = rounds_to_decide({e.value, Interval{*e.low, *e.high}, e.n, e.basis},
                                              least_efficiency(point.devices, threshold));
  }
  return point;
}

// Compares configurations with equal numbers of devices. A configuration that surely pays ranks
// first, then the faster one.
bool better(const Point& a, const Point& b, double threshold) {
  if (a.valid != b.valid) return a.valid;
  const bool a_pays = verdict(a, threshold) == Verdict::kPays;
  const bool b_pays = verdict(b, threshold) == Verdict::kPays;
  if (a_pays != b_pays) return a_pays;
  return a.speedup.value > b.speedup.value;
}

// On one device, the best point is the `single` baseline if there is one.
void mark_best(std::vector<Point>& points, double threshold) {
  std::map<int, Point*> best;
  for (Point& point : points) {
    Point*& current = best[point.devices];
    const bool baseline = point.devices == 1 && current != nullptr && current->mode == "single";
    if (point.valid && !baseline && (!current || better(point, *current, threshold))) {
      current = &point;
    }
  }
  for (const auto& [devices, point] : best) {
    if (point != nullptr) point->best = true;
  }
}

// Writes the text of one answer. Rows are the best of each number of devices, ascending.
class Writer {
 public:
  Writer(Advice& advice, const AdviceOptions& options, std::string noun)
      : advice_(advice), options_(options), noun_(std::move(noun)) {
    for (const Point& point : advice.points) {
      if (point.best) rows_.push_back(&point);
    }
  }

  void write() {
    if (rows_.empty() || rows_.front()->devices != 1) return no_answer();
    const Point* chosen = rows_.front();
    for (const Point* row : rows_) {
      if (row->devices > 1 && pays(*row)) chosen = row;
    }
    advice_.recommended = chosen->devices;
    advice_.mode = chosen->mode;
    advice_.backend = chosen->backend;
    chosen->devices > 1 ? ask_for(*chosen) : stay_on_one();
    add_modes(*chosen);
    add_data_wait(*chosen);
    add_uncertain(*chosen);
    add_next_step(*chosen);
    add_failures();
    mark_disturbed(busy_elsewhere(), advice_);
  }

 private:
  bool pays(const Point& p) const { return verdict(p, options_.min_efficiency) == Verdict::kPays; }
  bool unsure(const Point& p) const {
    return verdict(p, options_.min_efficiency) == Verdict::kUnsure;
  }

  std::string things(int n) const { return fmt::format("{} {}{}", n, noun_, n == 1 ? "" : "s"); }

  static std::string spread(const Point& p) {
    const Metric& e = p.efficiency;
    if (!e.low || !e.high)
      return fmt::format("efficiency {}, interval unknown", format_ratio(e.value));
    return fmt::format("efficiency {}, 95 % CI {} to {}", format_ratio(e.value),
                       format_ratio(*e.low), format_ratio(*e.high));
  }

  static std::string how(const Point& p) {
    return p.backend == "local" ? p.mode : p.mode + " over " + p.backend;
  }

  void no_answer() {
    advice_.certain = false;
    answer("no_baseline",
           fmt::format("No answer for {}: the baseline on one device was not measured.",
                       advice_.model));
    add_failures();
  }

  void ask_for(const Point& p) {
    answer("pays", fmt::format("Use {} with {}: {} trains {}x as fast as on 1 ({}, target {:.2f}).",
                               things(p.devices), how(p), advice_.model,
                               format_ratio(p.speedup.value), spread(p), options_.min_efficiency));
    if (p.devices == rows_.back()->devices)
      advice_.notes.push_back(
          fmt::format("{} was the largest count measured; more may scale further.", p.devices));
  }

  void stay_on_one() {
    if (rows_.size() == 1) {
      advice_.certain = false;
      answer("one_device_measured", fmt::format("Use 1 {}: no larger count was measured.", noun_));
      return;
    }
    const Point& best = *(compared_ = *std::max_element(
                              rows_.begin() + 1, rows_.end(), [](const Point* a, const Point* b) {
                                return a->efficiency.value < b->efficiency.value;
                              }));
    const double asked = options_.min_efficiency;
    const bool none_faster = std::ranges::none_of(rows_, [](const Point* p) {
      return p->devices > 1 && p->efficiency.low.value_or(0) > even(p->devices);
    });
    const bool little_asked = none_faster && least_efficiency(best.devices, asked) > asked;
    const Reason reason = reason_against(unsure(best), little_asked);
    answer(reason.code,
           fmt::format("Use 1 {}: {} for {}. {} with {} train {}x as fast ({}, target {:.2f}).",
                       noun_, reason.text, advice_.model, things(best.devices), how(best),
                       format_ratio(best.speedup.value), spread(best), asked));
  }

  struct Reason {
    const char *code, *text;
  };
  static Reason reason_against(bool unsure, bool about_speed) {
    if (about_speed)
      return unsure ? Reason{"uncertain_to_be_faster", "more may not be faster"}
                    : Reason{"not_faster", "more are not faster"};
    return unsure ? Reason{"uncertain_to_pay", "more may not pay"}
                  : Reason{"does_not_pay", "more do not pay"};
  }

  void answer(const char* reason, std::string because) {
    advice_.reason = reason;
    advice_.because = std::move(because);
  }

  double busy_elsewhere() const {
    double most = 0;
    for (const Point& p : advice_.points) most = std::fmax(most, p.busy_elsewhere);
    return most;
  }

  void add_modes(const Point& chosen) {
    const int devices = compared_ != nullptr ? compared_->devices : chosen.devices;
    if (devices == 1) return;
    for (std::string& note : mode_notes(advice_.points, devices, things(devices))) {
      advice_.notes.push_back(std::move(note));
    }
  }

  // A slow loader hides bad scaling: every number of devices waits for it.
  void add_data_wait(const Point& chosen) {
    if (!(chosen.data_wait_fraction > kNoticeableWait)) return;
    advice_.notes.push_back(
        fmt::format("{} of a step on {} is data wait. Try more --workers before more devices.",
                    format_percent(chosen.data_wait_fraction), things(chosen.devices)));
  }

  void add_uncertain(const Point& chosen) {
    for (const Point* row : rows_) {
      if (row->devices <= chosen.devices || !unsure(*row)) continue;
      advice_.certain = false;
      advice_.notes.push_back(uncertainty(*row));
    }
  }

  std::string uncertainty(const Point& p) const {
    const std::string start =
        fmt::format("Uncertain at {}: {} spans {:.2f}. ", things(p.devices), spread(p),
                    least_efficiency(p.devices, options_.min_efficiency));
    if (!p.efficiency.low) {
      return fmt::format(
          "Uncertain at {}: too few iterations for an interval. Measure three rounds or more "
          "(--rounds), with a --time-budget that they fit into.",
          things(p.devices));
    }
    if (p.efficiency.basis != "rounds") {
      return start + "Measure three complete rounds or more (--rounds, --time-budget).";
    }
    if (p.rounds_to_decide) {
      return start + fmt::format("About --rounds {} would settle it.", *p.rounds_to_decide);
    }
    return start + "More rounds would not settle it; either choice is sound.";
  }

  void add_next_step(const Point& chosen) {
    const auto next = std::find_if(rows_.begin(), rows_.end(),
                                   [&](const Point* row) { return row->devices > chosen.devices; });
    if (next == rows_.end()) return;
    const Point& up = **next;
    if (&up == compared_) return;  // already in the answer
    advice_.notes.push_back(
        fmt::format("Next step: {} train {}x as fast as {}, with {:.2g}x the devices.",
                    things(up.devices), format_ratio(up.speedup.value / chosen.speedup.value),
                    chosen.devices, static_cast<double>(up.devices) / chosen.devices));
  }

  void add_failures() {
    for (const Point& p : advice_.points) {
      for (const std::string& flag : p.flags) {
        if (!flag.starts_with("failed: ")) continue;
        advice_.notes.push_back(fmt::format("Failed: {} on {}: {}.", how(p), things(p.devices),
                                            without_full_stop(flag.substr(8))));
      }
    }
  }

  Advice& advice_;
  const AdviceOptions& options_;
  std::string noun_;
  std::vector<const Point*> rows_;
  const Point* compared_ = nullptr;  // the row that one device was compared with
};

// Accepts the same range as the command line options.
double up_to(double most, const JsonNode& node) {
  const double value = node.number();
  if (value <= 0 || value > most)
    node.fail(fmt::format("expected a number above 0, {} at most", most));
  return value;
}

nlohmann::ordered_json row_json(const Point& p, const AdviceOptions& options) {
  nlohmann::ordered_json row = {{"devices", p.devices},
                                {"mode", p.mode},
                                {"backend", p.backend},
                                {metric::kSamplesPerS, p.samples_per_s},
                                {"speedup", p.speedup.value},
                                {"efficiency", p.efficiency.value},
                                {"efficiency_low", nullptr},
                                {"efficiency_high", nullptr},
                                {"seconds_to_train", options.samples_to_train / p.samples_per_s},
                                {"best", p.best},
                                {"valid", p.valid}};
  const auto told = [&](const char* key, double value) {
    if (std::isfinite(value)) row[key] = value;
  };
  told(metric::kBubbleFraction, p.bubble);
  told(metric::kTheoreticalBubbleFraction, p.theoretical_bubble);
  told(metric::kExposedCommunicationS, p.exposed_seconds);
  told(metric::kStragglerRank, p.straggler);
  told(metric::kStragglerExtraS, p.straggler_extra_seconds);
  told(metric::kPeakBytesPerDevice, p.peak_bytes);
  row["device_hours_to_train"] = options.samples_to_train / p.samples_per_s * p.devices / 3600;
  if (p.efficiency.low) row["efficiency_low"] = *p.efficiency.low;
  if (p.efficiency.high) row["efficiency_high"] = *p.efficiency.high;
  return row;
}

nlohmann::ordered_json case_json(const Advice& advice, const AdviceOptions& options) {
  nlohmann::ordered_json table = nlohmann::ordered_json::array();
  for (const Point& point : advice.points) table.push_back(row_json(point, options));
  nlohmann::ordered_json recommended;
  if (advice.recommended) recommended = *advice.recommended;
  return {{"model", advice.model},     {"recommended", recommended},
          {"certain", advice.certain}, {"disturbed", advice.disturbed},
          {"mode", advice.mode},       {"backend", advice.backend},
          {"reason", advice.reason},   {"because", advice.because},
          {"notes", advice.notes},     {"table", table}};
}

}  // namespace

bool Point::has_flag(std::string_view start) const {
  return std::any_of(flags.begin(), flags.end(),
                     [&](const std::string& flag) { return flag.starts_with(start); });
}

std::vector<Advice> advise(const std::vector<Measurement>& measurements,
                           const AdviceOptions& options) {
  std::vector<Advice> all;
  std::map<std::string, std::string> devices;  // the device lists of each model
  for (const Measurement& m : measurements) {
    if (m.suite != "speedup") continue;
    const std::string model = needed_parameter(m, "model");
    auto it = std::find_if(all.begin(), all.end(),
                           [&](const Advice& advice) { return advice.model == model; });
    if (it == all.end()) {
      it = all.emplace(all.end());
      it->model = model;
    }
    devices[model] += needed_parameter(m, "device_list") + ",";
    it->points.push_back(point_of(m, options.min_efficiency));
  }
  for (Advice& advice : all) {
    std::stable_sort(advice.points.begin(), advice.points.end(),
                     [](const Point& a, const Point& b) { return a.devices < b.devices; });
    mark_best(advice.points, options.min_efficiency);
    Writer(advice, options, std::string(noun_of(device_kind(devices[advice.model])))).write();
  }
  return all;
}

nlohmann::ordered_json to_json(const std::vector<Advice>& advice, const AdviceOptions& options) {
  nlohmann::ordered_json cases = nlohmann::ordered_json::array();
  for (const Advice& one : advice) cases.push_back(case_json(one, options));
  if (cases.empty()) return nlohmann::ordered_json::object();
  nlohmann::ordered_json gpus = {{"recommended", cases[0]["recommended"]},
                                 {"reason", cases[0]["reason"]},
                                 {"because", cases[0]["because"]},
                                 {"certain", std::ranges::all_of(advice, &Advice::certain)},
                                 {"disturbed", std::ranges::any_of(advice, &Advice::disturbed)},
                                 {"min_efficiency", options.min_efficiency},
                                 {"samples_to_train", options.samples_to_train},
                                 {"table", cases[0]["table"]},
                                 {"cases", cases}};
  for (const Advice& one : advice) {
    if (one.recommended == advice[0].recommended) continue;
    gpus["recommended"] = nullptr;
    gpus["reason"] = "depends_on_model";
    gpus["because"] = "The answer depends on the model; see the cases.";
  }
  return gpus;
}

AdviceOptions options_from_answer(const nlohmann::json& answer, const std::string& source) {
  AdviceOptions options;
  const JsonNode root(answer, source);
  const auto gpus = root.find("gpus");
  if (!gpus) return options;
  options.min_efficiency = up_to(2, gpus->at("min_efficiency"));
  options.samples_to_train = up_to(kMostCount, gpus->at("samples_to_train"));
  return options;
}

}  // namespace howmany::reports
