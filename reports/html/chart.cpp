// SPDX-License-Identifier: Apache-2.0
#include "reports/html/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/base/text/escape.h"
#include "core/base/text/table.h"

namespace howmany::reports {
namespace {

using Scale = ChartAxis::Scale;

// Corners of the plot in SVG units. The page scales the picture.
constexpr double kChartWidth = 480, kPlotLeft = 70, kPlotRight = 466, kPlotTop = 12,
                 kPlotBottom = 232;
constexpr double kLegend = 284, kLine = 17;
constexpr double kMaxMagnitude = 1e18, kMinMagnitude = 1e-18;  // no measurement is beyond
constexpr size_t kMaxName = 60;

bool drawable(double value, Scale scale) {
  if (!std::isfinite(value) || std::abs(value) > kMaxMagnitude) return false;
  return scale == Scale::kLinear ? value >= 0 : value >= kMinMagnitude;
}

double log_of(double value, Scale scale) {
  return scale == Scale::kLog2 ? std::log2(value) : std::log10(value);
}

// Maps values to SVG coordinates. On a logarithmic axis, `low` and `high` are logarithms.
struct Ruler {
  Scale scale = Scale::kLinear;
  double low = 0, high = 1, step = 1, from = 0, to = 1;

  double at(double value) const {
    const double v = scale == Scale::kLinear ? value : log_of(value, scale);
    return from + (to - from) * std::clamp((v - low) / (high - low), 0.0, 1.0);
  }
  double value(double tick) const {
    return scale == Scale::kLinear ? tick
           : scale == Scale::kLog2 ? std::exp2(tick)
                                   : std::pow(10, tick);
  }
};

// Returns 1, 2 or 5 times a power of ten, for about five ticks.
double nice_step(double range, bool whole) {
  const double raw = range / 5, power = std::pow(10, std::floor(std::log10(raw)));
  const double step = power * (raw <= power ? 1 : raw <= 2 * power ? 2 : raw <= 5 * power ? 5 : 10);
  return whole ? std::max(1.0, step) : step;
}

Ruler ruler_of(double least, double most, const ChartAxis& axis, double from, double to) {
  Ruler ruler{axis.scale, 0, 1, 1, from, to};
  if (axis.scale == Scale::kLinear) {
    most = std::max(most, 1e-12);
    ruler.step = nice_step(most, axis.whole);
    ruler.high = ruler.step * std::ceil(most * (axis.whole ? 1 : 1.02) / ruler.step);
    return ruler;
  }
  ruler.low = std::floor(log_of(least, axis.scale));
  ruler.high = std::max(ruler.low + 1, std::ceil(log_of(most, axis.scale)));
  ruler.step = std::max(1.0, std::ceil((ruler.high - ruler.low) / 6));
  return ruler;
}

struct Picture {
  Ruler x, y;
};

bool shown(const Chart& chart, const ChartPoint& p) {
  return drawable(p.x, chart.x.scale) && drawable(p.y, chart.y.scale);
}

// Returns the chart without the series and points beyond the limits.
Chart cut(const Chart& chart) {
  Chart few{chart.title, chart.x, chart.y, {}};
  for (const ChartSeries& series : chart.series) {
    if (few.series.size() == kMaxSeries) break;
    ChartSeries kept{series.name, {}, series.guide, series.label};
    for (const ChartPoint& p : series.points)
      if (kept.points.size() < kMaxPoints && shown(chart, p)) kept.points.push_back(p);
    std::ranges::stable_sort(kept.points, {}, &ChartPoint::x);
    if (!kept.points.empty()) few.series.push_back(std::move(kept));
  }
  return few;
}

std::optional<Picture> picture_of(const Chart& chart) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  double x0 = kInfinity, x1 = -kInfinity, y0 = kInfinity, y1 = -kInfinity;
  bool measured = false;
  for (const ChartSeries& series : chart.series)
    for (const ChartPoint& p : series.points) {
      measured = measured || !series.guide;
      x0 = std::min(x0, p.x), x1 = std::max(x1, p.x);
      for (const double y : {p.low.value_or(p.y), p.y, p.high.value_or(p.y)})
        if (drawable(y, chart.y.scale)) y0 = std::min(y0, y), y1 = std::max(y1, y);
    }
  if (!measured) return std::nullopt;
  return Picture{ruler_of(x0, x1, chart.x, kPlotLeft, kPlotRight),
                 ruler_of(y0, y1, chart.y, kPlotBottom, kPlotTop)};
}

std::string ticks(const Ruler& ruler, const ChartAxis& axis, bool across) {
  std::string svg;
  for (int i = 0; i < 64 && ruler.low + i * ruler.step <= ruler.high + ruler.step * 1e-6; ++i) {
    const double value = ruler.value(ruler.low + i * ruler.step), at = ruler.at(value);
    const std::string text = escaped(axis.text(value), 24);
    svg += across ? fmt::format(
                        "<path class=\"grid\" d=\"M{0:.1f} {1}V{2}\"/><text x=\"{0:.1f}\" "
                        "y=\"{3}\" text-anchor=\"middle\">{4}</text>",
                        at, kPlotTop, kPlotBottom, kPlotBottom + 16, text)
                  : fmt::format(
                        "<path class=\"grid\" d=\"M{1} {0:.1f}H{2}\"/><text x=\"{3}\" "
                        "y=\"{4:.1f}\" text-anchor=\"end\">{5}</text>",
                        at, kPlotLeft, kPlotRight, kPlotLeft - 6, at + 4, text);
  }
  return svg;
}

std::string titles(const Chart& chart) {
  return fmt::format(
      "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>"
      "<text transform=\"translate(13 {}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
      (kPlotLeft + kPlotRight) / 2, kPlotBottom + 34, escaped(chart.x.title, kMaxName),
      (kPlotTop + kPlotBottom) / 2, escaped(chart.y.title, kMaxName));
}

constexpr std::array<const char*, kChartColors> kShapes = {
    "m-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z", "m-4 -4h8v8h-8z", "m0 -5l5 9h-10z",
    "m0 -5.5l5.5 5.5l-5.5 5.5l-5.5 -5.5z", "m0 5l5 -9h-10z", "m-2 -5h4v10h-4z"};
constexpr std::array<const char*, 5> kDashes = {"none", "7 3", "2 3", "9 3 2 3", "12 4"};

// Series beyond the number of colours repeat the colours with other dashes.
std::string dash(size_t series) {
  return kDashes[(series + series / kChartColors) % kDashes.size()];
}

std::string marker(size_t series, double x, double y, bool marked, const std::string& title) {
  return fmt::format("<path class=\"{}\" d=\"M{:.1f} {:.1f}{}\">{}</path>",
                     marked ? "hollow" : "full", x, y, kShapes[series % kShapes.size()],
                     title.empty() ? "" : "<title>" + title + "</title>");
}

std::string bar(const Chart& chart, const Picture& to, const ChartPoint& p) {
  if (!p.low || !p.high || !drawable(*p.high, chart.y.scale) || !std::isfinite(*p.low)) return "";
  const double low = drawable(*p.low, chart.y.scale) ? to.y.at(*p.low) : kPlotBottom;
  const double x = to.x.at(p.x), high = to.y.at(*p.high);
  return fmt::format("<path class=\"bar\" d=\"M{0:.1f} {1:.1f}h6m-3 0V{2:.1f}m-3 0h6\"/>", x - 3,
                     low, high);
}

std::string told(const Chart& chart, const ChartSeries& series, const ChartPoint& p) {
  std::string text = fmt::format("{}, {}: {}", series.name, chart.x.text(p.x), chart.y.text(p.y));
  if (p.low && p.high)
    text += fmt::format(" ({} to {})", chart.y.text(*p.low), chart.y.text(*p.high));
  return escaped(text + (p.marked ? ", marked" : ""), 200);
}

std::string guide_label(const Picture& to, const ChartSeries& series) {
  if (series.label.empty()) return "";
  const ChartPoint& first = series.points.front();
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>", to.x.at(first.x) + 4,
                     to.y.at(first.y) - 5, escaped(series.label, kMaxName));
}

std::string line_of(const Chart& chart, const Picture& to, size_t number) {
  const ChartSeries& series = chart.series[number];
  std::string path, bars, points;
  for (const ChartPoint& p : series.points) {
    const double x = to.x.at(p.x), y = to.y.at(p.y);
    path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x, y);
    if (series.guide) continue;
    bars += bar(chart, to, p);
    points += marker(number, x, y, p.marked, told(chart, series, p));
  }
  if (series.guide)
    return fmt::format("<path class=\"guide\" d=\"{}\"/>{}\n", path, guide_label(to, series));
  return fmt::format(
      "<g class=\"s{}\"><path class=\"line\" stroke-dasharray=\"{}\" d=\"{}\"/>{}{}</g>\n",
      number % kChartColors, dash(number), path, bars, points);
}

std::string legend(const Chart& chart) {
  std::string svg;
  for (size_t i = 0; i < chart.series.size(); ++i) {
    const double y = kLegend + kLine * static_cast<double>(i);
    const bool guide = chart.series[i].guide;
    svg += guide ? fmt::format("<path class=\"guide\" d=\"M{} {}h30\"/>", kPlotLeft, y)
                 : fmt::format(
                       "<g class=\"s{}\"><path class=\"line\" stroke-dasharray=\"{}\" "
                       "d=\"M{} {}h30\"/>{}</g>",
                       i % kChartColors, dash(i), kPlotLeft, y,
                       marker(i, kPlotLeft + 15, y, false, ""));
    svg += fmt::format("<text x=\"{}\" y=\"{}\">{}</text>\n", kPlotLeft + 38, y + 4,
                       escaped(chart.series[i].name, kMaxName));
  }
  return svg;
}

// Returns the lines of the legend below the names.
std::vector<std::string> remarks(const Chart& asked, const Chart& chart) {
  std::vector<std::string> lines;
  const auto marked = [](const ChartSeries& s) {
    return std::ranges::any_of(s.points, &ChartPoint::marked);
  };
  if (std::ranges::any_of(chart.series, marked))
    lines.emplace_back("hollow: marked in the table, not a clean result");
  const bool many = std::ranges::any_of(
      asked.series, [](const ChartSeries& s) { return s.points.size() > kMaxPoints; });
  if (many || asked.series.size() > kMaxSeries)
    lines.push_back(
        fmt::format("left out: more than {} lines, or {} points of one", kMaxSeries, kMaxPoints));
  return lines;
}

// As in the page's style sheet, in light colours and without variables, which not every program
// that converts SVG knows.
constexpr const char* kFileStyle =
    ".grid{stroke:#d5d5d5;fill:none}.guide{stroke:#595959;fill:none;stroke-dasharray:1 4;"
    "stroke-width:1.5;stroke-linecap:round}.line,.bar{fill:none;stroke:currentColor;"
    "stroke-width:1.5}.full{fill:currentColor}.hollow{fill:#fff;stroke:currentColor;"
    "stroke-width:2}.s0{color:#0067a5}.s1{color:#c04e00}.s2{color:#007a5a}.s3{color:#a8447f}"
    ".s4{color:#5b4ab5}.s5{color:#7a6200}";

std::string start(const Chart& chart, double height, bool file) {
  const std::string label =
      escaped(fmt::format("{}: {} over {}", chart.title, chart.y.title, chart.x.title));
  const std::string box = fmt::format("viewBox=\"0 0 {} {}\"", kChartWidth, height);
  if (!file) return fmt::format("<svg {} role=\"img\" aria-label=\"{}\">\n", box, label);
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" {2} "
      "font-family=\"Helvetica, Arial, sans-serif\" font-size=\"12\" fill=\"#1a1a1a\">\n"
      "<title>{3}</title>\n<style>{4}</style>\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"#fff\"/>\n",
      kChartWidth, height, box, label, kFileStyle);
}

std::string drawn(const Chart& asked, bool file) {
  const Chart chart = cut(asked);
  const std::optional<Picture> to = picture_of(chart);
  if (!to) return "";
  const std::vector<std::string> lines = remarks(asked, chart);
  const double below = kLegend + kLine * static_cast<double>(chart.series.size());
  const double height = below + kLine * static_cast<double>(lines.size());
  std::string svg = start(chart, height, file);
  svg += ticks(to->x, chart.x, true) + "\n" + ticks(to->y, chart.y, false) + "\n" + titles(chart);
  for (size_t i = 0; i < chart.series.size(); ++i) svg += line_of(chart, *to, i);
  svg += legend(chart);
  for (size_t i = 0; i < lines.size(); ++i)
    svg += fmt::format("<text x=\"{}\" y=\"{}\">{}</text>\n", kPlotLeft,
                       below + kLine * static_cast<double>(i) + 4, escaped(lines[i]));
  return svg + "</svg>\n";
}

}  // namespace

std::string to_svg(const Chart& chart) { return drawn(chart, false); }

std::string to_svg_file(const Chart& chart) { return drawn(chart, true); }

std::string figure(const std::string& title, const std::string& svg) {
  if (svg.empty()) return "";
  return "<figure><figcaption>" + escaped(title, 200) + "</figcaption>\n" + svg + "</figure>\n";
}

}  // namespace howmany::reports
