// SPDX-License-Identifier: Apache-2.0
// Draws a chart as SVG, inline or as a file: lines with error bars, a legend, no script. Series
// differ in colour, marker and dashes. The page's style sheet defines the colours of the classes
// s0, s1, ... Text may come from untrusted files, so it is escaped and truncated. Values only; not
// tied to any thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace howmany::reports {

constexpr int kChartColors = 6;

struct ChartPoint {
  double x = 0, y = 0;  // points with a non-finite value are skipped, and on a logarithmic axis
                        // points with a value of 0 or less
  std::optional<double> low, high;
  bool marked = false;  // the measurement has flags: drawn hollow
};

struct ChartSeries {
  std::string name;
  std::vector<ChartPoint> points;
  bool guide = false;      // a reference that was not measured: a thin line without points
  std::string label = {};  // of a guide, above its left end
};

struct ChartAxis {
  enum class Scale { kLinear, kLog2, kLog10 };  // linear axes begin at 0
  std::string title;                            // including the unit
  Scale scale = Scale::kLinear;
  std::function<std::string(double)> text;  // formats a tick label
  bool whole = false;                       // integers: ticks only at whole numbers
};

struct Chart {
  std::string title;
  ChartAxis x, y;
  std::vector<ChartSeries> series;
};

// Returns "" if there is no point to draw. Draws at most kMaxSeries series and kMaxPoints points
// per series; the legend reports omissions.
constexpr size_t kMaxSeries = 12, kMaxPoints = 200;
std::string to_svg(const Chart& chart);
// Returns the text of a file, of a fixed size and with its own style: black on white.
std::string to_svg_file(const Chart& chart);

// Returns the SVG with a caption; "" if it is empty.
std::string figure(const std::string& title, const std::string& svg);

}  // namespace howmany::reports
