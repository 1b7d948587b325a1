// SPDX-License-Identifier: Apache-2.0
#include "reports/predict/forecast_json.h"

#include <algorithm>
#include <map>

#include "core/base/text/json.h"
#include "reports/predict/decide.h"

namespace howmany::reports {
namespace {

nlohmann::ordered_json row_of(const Forecast& f, const ForecastRow& offer) {
  nlohmann::ordered_json row = {{"devices", offer.devices}};
  if (!offer.refused.empty()) {
    row["refused"] = offer.refused;
    return row;
  }
  const auto add = [&](const std::string& name, const Range& range, const std::string& end) {
    row[name] = range.value;
    if (offer.is_measured()) return;
    row[end + "low"] = range.low;
    row[end + "high"] = range.high;
  };
  if (!offer.mode.empty()) row["mode"] = offer.mode;
  add("samples_per_s", offer.per_s, "");
  add("efficiency", offer.efficiency, "efficiency_");
  if (f.options.samples) {
    add("hours", hours(offer, *f.options.samples), "hours_");
    add("device_hours", device_hours(offer, *f.options.samples), "device_hours_");
  }
  if (offer.devices == 1 && !f.basis.empty())
    row["rung"] = f.counted.is_null() ? "preset" : "count";
  else if (!offer.is_measured())
    row["rung"] = rung_used(known_rates(f), offer.devices, f.options.devices_per_node).name;
  return row;
}

// The value if it was measured, else with its interval.
Range range_from(const JsonNode& row, const std::string& name, const std::string& end,
                 bool measured) {
  const double value = row.at(name).number();
  if (measured) return {value, value, value};
  return {value, row.at(end + "low").number(), row.at(end + "high").number()};
}

ForecastRow offer_from(const JsonNode& row, Evidence evidence) {
  ForecastRow offer;
  offer.evidence = evidence;
  offer.devices = static_cast<int>(row.at("devices").integer_between(1, kMaxPredicted));
  if (const auto refused = row.find("refused")) {
    offer.refused = refused->string();
    return offer;
  }
  if (const auto mode = row.find("mode")) offer.mode = mode->string();
  offer.per_s = range_from(row, "samples_per_s", "", offer.is_measured());
  offer.efficiency = range_from(row, "efficiency", "efficiency_", offer.is_measured());
  return offer;
}

}  // namespace

const char* name_of(Evidence evidence) {
  switch (evidence) {
    case Evidence::kMeasured:
      return "measured";
    case Evidence::kRehearsed:
      return "rehearsed";
    case Evidence::kPredicted:
      break;
  }
  return "predicted";
}

nlohmann::ordered_json to_json(const Forecast& f) {
  std::map<std::string, nlohmann::ordered_json> by_kind;
  for (const char* const kind : {"measured", "rehearsed", "predicted"})
    by_kind[kind] = nlohmann::ordered_json::array();
  for (const ForecastRow& offer : f.rows)
    by_kind[name_of(offer.evidence)].push_back(row_of(f, offer));
  nlohmann::ordered_json json = {
      {"what", f.what},
      {"cluster", f.cluster},
      {"computed", f.computed},
      {"basis", f.basis},
      {"scaling", f.strong ? "strong" : "weak"},
      {"spread", f.spread},
      {"recommended", f.recommended ? nlohmann::json(*f.recommended) : nlohmann::json(nullptr)},
      {"because", f.sentences.front()},
      {"notes", std::vector<std::string>(f.sentences.begin() + 1, f.sentences.end())},
      {"noun", f.noun},
      {"min_efficiency", f.options.min_efficiency},
      {"samples", number_or_null(f.options.samples)},
      {"finish_within_hours", number_or_null(f.options.finish_within_hours)},
      {"budget_device_hours", number_or_null(f.options.budget_device_hours)},
      {"price_per_device_hour", number_or_null(f.options.price)},
      {"devices_per_node", f.options.devices_per_node},
      {"interval", kPredictionCoverage},
      {"measured", by_kind["measured"]},
      {"rehearsed", by_kind["rehearsed"]},
      {"predicted", by_kind["predicted"]}};
  if (f.of_batches) json["rate_unit"] = "gpu_batches_per_s";
  if (!f.next.empty()) json["next"] = f.next;
  if (!f.counted.is_null()) json["counted"] = f.counted;
  return json;
}

Forecast forecast_from_json(const nlohmann::json& json, const std::string& source) {
  const JsonNode root(json, source);
  Forecast f;
  f.what = root.at("what").string();
  f.cluster = root.at("cluster").string();
  f.noun = root.at("noun").string();
  if (const auto computed = root.find("computed")) f.computed = computed->boolean();
  if (const auto basis = root.find("basis")) f.basis = basis->string();
  if (const auto next = root.find("next")) f.next = next->string();
  if (const auto counted = root.find("counted")) f.counted = counted->value();
  if (const auto scaling = root.find("scaling")) f.strong = scaling->string() == "strong";
  if (const auto spread = root.find("spread")) f.spread = spread->number();
  f.options.devices_per_node =
      static_cast<int>(root.at("devices_per_node").integer_between(1, kMaxPredicted));
  f.options.min_efficiency = root.at("min_efficiency").number();
  const auto figure = [&](const char* key) {
    const auto value = root.find(key);
    return value ? std::optional(value->number()) : std::nullopt;
  };
  f.options.samples = figure("samples");
  f.options.finish_within_hours = figure("finish_within_hours");
  f.options.budget_device_hours = figure("budget_device_hours");
  f.options.price = figure("price_per_device_hour");
  if (const auto n = root.find("recommended"))
    f.recommended = static_cast<int>(n->integer_between(1, kMaxPredicted));
  for (const Evidence kind : {Evidence::kMeasured, Evidence::kRehearsed, Evidence::kPredicted})
    for (const JsonNode& row : root.at(name_of(kind)).items())
      f.rows.push_back(offer_from(row, kind));
  std::ranges::sort(f.rows, {}, &ForecastRow::devices);
  for (const ForecastRow& offer : f.rows)
    if (offer.is_measured()) f.measured.push_back({offer.devices, offer.per_s.value});
  if (f.measured.empty() != !f.basis.empty() || f.rows.empty() || f.rows.back().is_measured())
    root.fail("nothing measured, or nothing beyond");
  f.options.up_to = f.rows.back().devices;
  f.sentences.push_back(root.at("because").string());
  for (const std::string& note : root.at("notes").strings()) f.sentences.push_back(note);
  return f;
}

}  // namespace howmany::reports
