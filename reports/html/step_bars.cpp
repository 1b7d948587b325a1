// SPDX-License-Identifier: Apache-2.0
#include "reports/html/step_bars.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/schema/parameters.h"
#include "core/base/text/escape.h"
#include "core/base/text/format.h"
#include "reports/gpus/step_parts.h"

namespace howmany::reports {
namespace {

constexpr double kPictureWidth = 480, kBarHeight = 14, kBarPitch = 38, kLegendPitch = 17;

// Returns the seconds, or 0 if they are missing or not a time.
double seconds_of(const Measurement& m, const StepPart& part) {
  const auto found = m.metrics.find(std::string("profile_") + part.name);
  const double value = found == m.metrics.end() ? 0 : found->second.value;
  return std::isfinite(value) && value > 0 && value < 1e9 ? value : 0;
}

double sum_of_parts(const Measurement& m) {
  double sum = 0;
  for (const StepPart& part : kStepParts) sum += seconds_of(m, part);
  return sum;
}

std::string name_of_bar(const Measurement& m) {
  const auto value = [&](const char* key) {
    const auto found = m.parameters.find(key);
    return found == m.parameters.end() ? std::string("-") : found->second;
  };
  return fmt::format("{} over {}, devices {}: {}", value(parameter::kMode),
                     value(parameter::kBackend), value(parameter::kDevices),
                     format_seconds(sum_of_parts(m)));
}

std::string words_of_bar(const Measurement& m) {
  std::string words = name_of_bar(m);
  for (const StepPart& part : kStepParts)
    if (const double seconds = seconds_of(m, part); seconds > 0)
      words += fmt::format(", {} {}", part.word, format_percent(seconds / sum_of_parts(m)));
  return words;
}

std::string bar_of(const Measurement& m, double y, double longest) {
  std::string svg =
      fmt::format("<text x=\"0\" y=\"{}\">{}</text>\n", y + 12, escaped(name_of_bar(m), 100));
  double x = 0;
  for (size_t i = 0; i < std::size(kStepParts); ++i) {
    const double seconds = seconds_of(m, kStepParts[i]);
    if (seconds == 0) continue;
    const double width = kPictureWidth * seconds / longest;
    svg += fmt::format(
        "<rect class=\"part s{}\" x=\"{:.1f}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\"><title>{}: "
        "{}</title></rect>",
        i, x, y + 16, width, kBarHeight, kStepParts[i].word, format_seconds(seconds));
    x += width;
  }
  return svg + "\n";
}

// Names the parts that a bar has. The class of part i is s<i>, as for the lines of a chart.
std::string legend_of_bars(const std::vector<const Measurement*>& rows, double y) {
  std::string svg;
  size_t place = 0;
  for (size_t i = 0; i < std::size(kStepParts); ++i) {
    const auto has_it = [&](const Measurement* m) { return seconds_of(*m, kStepParts[i]) > 0; };
    if (std::ranges::none_of(rows, has_it)) continue;
    const double top = y + kLegendPitch * static_cast<double>(place / 3);
    const size_t left = place++ % 3 * 160;
    svg += fmt::format(
        "<rect class=\"part s{}\" x=\"{}\" y=\"{}\" width=\"12\" height=\"12\"/>"
        "<text x=\"{}\" y=\"{}\">{}</text>\n",
        i, left, top, left + 18, top + 11, kStepParts[i].word);
  }
  return svg;
}

}  // namespace

std::string step_bars(const HtmlGroup& group) {
  std::vector<const Measurement*> rows;
  double longest = 0;
  std::string words;
  for (const Measurement* m : group.rows)
    if (sum_of_parts(*m) > 0 && rows.size() < kMaxBars) {
      rows.push_back(m);
      longest = std::max(longest, sum_of_parts(*m));
      words += (words.empty() ? "" : "; ") + words_of_bar(*m);
    }
  if (rows.empty()) return "";
  std::string bars;
  for (size_t i = 0; i < rows.size(); ++i)
    bars += bar_of(*rows[i], kBarPitch * static_cast<double>(i), longest);
  const double below = kBarPitch * static_cast<double>(rows.size()) + 6;
  return fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n{}{}</svg>\n",
                     kPictureWidth, below + 2 * kLegendPitch, escaped(words, 4000), bars,
                     legend_of_bars(rows, below));
}

}  // namespace howmany::reports
