// SPDX-License-Identifier: Apache-2.0
#include "reports/forms/plots.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/text/format.h"
#include "reports/html/chart.h"

namespace howmany::reports {
namespace {

using Scale = ChartAxis::Scale;

std::string tick_count(double value) { return format_count(value); }
std::string tick_ratio(double value) {
  return format_ratio(value, value == std::floor(value) ? 0 : 2);
}

std::string tick_seconds(double value) { return fmt::format("{:.6g}", value); }

struct PlotKind {
  const char* name;
  std::string title;  // of the y axis
  Figure ScalingRow::*figure;
  std::string (*text)(double);
};

PlotKind kind_of(const std::string& name, const ScalingRows& rows) {
  if (name == "speedup") return {"Speedup", "speedup", &ScalingRow::speedup, tick_ratio};
  if (name == "efficiency")
    return {"Efficiency", "efficiency", &ScalingRow::efficiency, tick_ratio};
  const bool wall = rows.measured.front().wall_s.value > 0;
  return {"Time", wall ? "time of a run (s)" : "time of a step (s)",
          wall ? &ScalingRow::wall_s : &ScalingRow::step_s, tick_seconds};
}

ChartSeries series_of(const std::string& name, const std::vector<ScalingRow>& from,
                      const ScalingRows& rows, const PlotKind& kind) {
  ChartSeries series{name, {}};
  for (const ScalingRow& row : from) {
    const Figure& figure = row.*kind.figure;
    if (std::isfinite(figure.value))
      series.points.push_back(
          {static_cast<double>(count_of(rows, row)), figure.value, figure.low, figure.high});
  }
  return series;
}

// A line from the left end of the plot, or the smallest count on a logarithmic axis, to the largest
// count.
ChartSeries line(const std::string& name, double left, double right, double at_left,
                 double at_right, const std::string& label = "") {
  return {name, {{left, at_left, {}, {}}, {right, at_right, {}, {}}}, true, label};
}

std::vector<ChartSeries> guides(const Form& form, const ScalingRows& rows, const std::string& kind,
                                double right) {
  const ScalingRow& base = rows.measured.front();
  const double first = count_of(rows, base), left = form.linear ? 0 : first;
  if (kind == "speedup") return {line("ideal", left, right, left / first, right / first)};
  if (kind != "efficiency") return {};
  std::vector<ChartSeries> all = {line("ideal", left, right, 1, 1)};
  if (form.threshold) {
    const std::string label = format_ratio(*form.threshold) + " required";
    all.push_back(
        line("required by the form", left, right, *form.threshold, *form.threshold, label));
  }
  return all;
}

}  // namespace

std::vector<FormPlot> form_plots(const Form& form, const ScalingRows& rows,
                                 const std::string& noun) {
  std::vector<FormPlot> plots;
  const std::string across = rows.over_nodes ? "nodes" : noun;
  for (const std::string& name : form.plots) {
    const PlotKind kind = kind_of(name, rows);
    const Scale x = form.linear ? Scale::kLinear : Scale::kLog2;
    const Scale y = form.linear || name == "efficiency" ? Scale::kLinear
                    : name == "speedup"                 ? Scale::kLog2
                                                        : Scale::kLog10;
    Chart chart{fmt::format("{} by {}", kind.name, across),
                {across, x, tick_count, true},
                {kind.title, y, kind.text, false},
                {series_of("measured, 95 % interval", rows.measured, rows, kind)}};
    if (chart.series[0].points.size() < 2) continue;
    double right = chart.series[0].points.back().x;
    if (!rows.beyond.empty() && !rows.by_total_time) {
      chart.series.push_back(series_of("not measured: 90 % interval", rows.beyond, rows, kind));
      for (const ChartPoint& p : chart.series.back().points) right = std::max(right, p.x);
    }
    for (ChartSeries& guide : guides(form, rows, name, right))
      chart.series.push_back(std::move(guide));
    plots.push_back({name, chart.title, to_svg_file(chart)});
  }
  return plots;
}

}  // namespace howmany::reports
