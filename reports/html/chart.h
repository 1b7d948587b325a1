// A chart as inline SVG: lines with error bars over one axis, a legend below, no script. Series are
// told apart by colour, by the shape of their points and by dashes; the page's style sheet gives
// the classes s0, s1, ... their colours. Text may be from files of others: it is escaped and cut.
// Values only; not tied to any thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace howmany::reports {

constexpr int kChartColors = 6;

struct ChartPoint {
  double x = 0, y = 0;  // a point with one that is not finite is left out, as is one that is not
                        // above 0 on an axis of logarithms
  std::optional<double> low, high;
  bool marked = false;  // not a clean result: drawn hollow
};

struct ChartSeries {
  std::string name;
  std::vector<ChartPoint> points;
  bool guide = false;  // something to compare with, not measured: a thin line without points
};

struct ChartAxis {
  enum class Scale { kLinear, kLog2, kLog10 };  // linear ones begin at 0
  std::string title;                            // with the unit
  Scale scale = Scale::kLinear;
  std::function<std::string(double)> text;  // of a number beside the axis
  bool whole = false;                       // counts: no ticks between whole numbers
};

struct Chart {
  std::string title;
  ChartAxis x, y;
  std::vector<ChartSeries> series;
};

// Empty where there is no point to draw. What is beyond the first kMostSeries, or the first
// kMostPoints of a series, is left out, and the legend says so.
constexpr size_t kMostSeries = 12, kMostPoints = 200;
std::string to_svg(const Chart& chart);

// For HTML's text and quoted attributes: markup escaped, '?' for control characters and for what is
// not UTF-8, and cut after `most` bytes, where "..." marks the cut.
std::string escaped(const std::string& text, size_t most = 600);

}  // namespace howmany::reports
