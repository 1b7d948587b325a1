// SPDX-License-Identifier: Apache-2.0
#include "reports/forms/experiments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "core/base/text/format.h"
#include "reports/predict/forecast_json.h"
#include "reports/results/toml_keys.h"

namespace howmany::reports {
namespace {

constexpr double kMaxHours = 366 * 24, kMaxRuns = 1e6, kMaxCount = 1e6;

// Returns the row of the count; of several with that number of nodes, the one with most devices.
// Measured rows come first.
const ScalingRow* row_with(const ScalingRows& rows, int ScalingRow::*count, int wanted) {
  const ScalingRow* found = nullptr;
  for (const std::vector<ScalingRow>* from : {&rows.measured, &rows.beyond}) {
    for (const ScalingRow& row : *from)
      if (row.*count == wanted && (found == nullptr || row.devices > found->devices)) found = &row;
    if (found != nullptr) return found;
  }
  return nullptr;
}

const ScalingRow& row_of_experiment(TomlKeys& keys, const ScalingRows& rows) {
  const bool by_nodes = keys.all().contains("nodes");
  if (by_nodes == keys.all().contains("devices"))
    keys.fail(nullptr, "nodes", "expected nodes or devices, one of them");
  const char* const key = by_nodes ? "nodes" : "devices";
  int ScalingRow::*const count = by_nodes ? &ScalingRow::nodes : &ScalingRow::devices;
  const int wanted = keys.count(key, kMaxCount);
  if (const ScalingRow* const row = row_with(rows, count, wanted)) return *row;
  std::set<int> known;
  for (const std::vector<ScalingRow>* from : {&rows.measured, &rows.beyond})
    for (const ScalingRow& row : *from) known.insert(row.*count);
  keys.fail(&keys.need(key), key,
            fmt::format("{} was neither measured nor predicted; there are {}", wanted,
                        fmt::join(known, ", ")));
}

double hours_of_run(TomlKeys& keys, const ScalingRow& row, bool of_batches) {
  if (keys.all().contains("samples") == keys.all().contains("hours"))
    keys.fail(nullptr, "samples", "expected samples or hours, one of them");
  if (keys.all().contains("hours")) return keys.number("hours", 1e-6, kMaxHours);
  const double samples = keys.number("samples", 1, kMostCount);
  if (of_batches && row.evidence != Evidence::kMeasured)
    keys.fail(&keys.need("samples"), "samples", "only rates of batches are known; give hours");
  const double start = std::isfinite(row.start_s.value) ? row.start_s.value : 0;
  const double hours = (samples / row.samples_per_s.value + start) / 3600;
  if (!(hours <= kMaxHours))
    keys.fail(&keys.need("samples"), "samples",
              fmt::format("a run would take {:.0f} days; the most is a year", hours / 24));
  return hours;
}

// Rounds to what the table shows, so that its products and sums are those of its cells.
double rounded(double units) {
  if (!(units > 0)) return 0;
  const double step = units >= 100 ? 1
                      : units >= 1 ? 0.1
                                   : std::pow(10, std::floor(std::log10(units)) - 1);
  return std::round(units / step) * step;
}

std::string cell_of(std::optional<double> units) {
  return units ? fmt::format("{:.10g}", *units) : "not known";
}

}  // namespace

std::vector<Experiment> read_experiments(std::string_view text, const std::string& source,
                                         const ScalingRows& rows) {
  const toml::table file = parse_toml(text, source);
  TomlKeys root(file, source);
  std::vector<Experiment> all;
  for (TomlKeys& keys : root.tables("experiment")) {
    Experiment one;
    one.name = keys.text("name");
    one.row = row_of_experiment(keys, rows);
    one.hours = hours_of_run(keys, one.row, rows.of_batches);
    one.runs = keys.count("runs", kMaxRuns);
    keys.close();
    all.push_back(std::move(one));
  }
  root.close();
  if (all.empty()) root.fail(nullptr, "experiment", "expected one or more [[experiment]]");
  return all;
}

DocumentTable experiments_table(
    const std::vector<Experiment>& experiments, const std::string& unit,
    const std::function<std::optional<double>(const ScalingRow&, double hours)>& units) {
  DocumentTable table{{"experiment", "nodes", "devices", "evidence", unit + " per run",
                       "number of runs", "total " + unit},
                      {}};
  std::optional<double> sum = 0;
  for (const Experiment& one : experiments) {
    std::optional<double> each = units(one.row, one.hours);
    if (each) each = rounded(*each);
    const std::optional<double> total = each ? std::optional(*each * one.runs) : std::nullopt;
    sum = sum && total ? std::optional(*sum + *total) : std::nullopt;
    table.rows.push_back({one.name, std::to_string(one.row.nodes), std::to_string(one.row.devices),
                          name_of(one.row.evidence), cell_of(each), std::to_string(one.runs),
                          cell_of(total)});
  }
  table.rows.push_back({"total", "", "", "", "", "", cell_of(sum)});
  return table;
}

}  // namespace howmany::reports
