// SPDX-License-Identifier: Apache-2.0
#include "reports/html/step_bars.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/schema/parameters.h"
#include "core/base/text/escape.h"
#include "core/base/text/format.h"
#include "reports/gpus/step_parts.h"

namespace howmany::reports {
namespace {

constexpr double kPictureWidth = 480, kBarHeight = 14, kBarPitch = 38, kLegendPitch = 17;
constexpr double kLetterWidth = 6, kMinColumn = 160;

// Returns the seconds, or 0 if they are missing or not a time.
double seconds_of(const StepBar& bar, size_t part) {
  const double value = part < bar.seconds.size() ? bar.seconds[part] : 0;
  return std::isfinite(value) && value > 0 && value < 1e9 ? value : 0;
}

double length_of(const StepBar& bar) {
  double sum = 0;
  for (size_t i = 0; i < bar.seconds.size(); ++i) sum += seconds_of(bar, i);
  return sum;
}

std::string title_of(const StepBar& bar) {
  return bar.name + ": " + format_seconds(bar.step > 0 ? bar.step : length_of(bar));
}

std::string words_of(std::span<const BarPart> parts, const StepBar& bar) {
  std::string words = title_of(bar);
  for (size_t i = 0; i < parts.size(); ++i)
    if (const double seconds = seconds_of(bar, i); seconds > 0)
      words += fmt::format(", {} {}", parts[i].word, format_percent(seconds / length_of(bar)));
  return words;
}

std::string drawn(std::span<const BarPart> parts, const StepBar& bar, double y, double longest) {
  std::string svg =
      fmt::format("<text x=\"0\" y=\"{}\">{}</text>\n", y + 12, escaped(title_of(bar), 100));
  double x = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const double seconds = seconds_of(bar, i);
    if (seconds == 0) continue;
    const double width = kPictureWidth * seconds / longest;
    svg += fmt::format(
        "<rect class=\"part {}\" x=\"{:.1f}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\"><title>{}: "
        "{}</title></rect>",
        parts[i].css, x, y + 16, width, kBarHeight, parts[i].word, format_seconds(seconds));
    x += width;
  }
  return svg + "\n";
}

struct Legend {
  std::string svg;
  double height = 0;
};

// Names the parts that a bar has, in columns as wide as the longest name.
Legend legend_of(std::span<const BarPart> parts, std::span<const StepBar> bars, double y) {
  std::vector<const BarPart*> shown;
  size_t letters = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (std::ranges::none_of(bars, [&](const StepBar& b) { return seconds_of(b, i) > 0; }))
      continue;
    shown.push_back(&parts[i]);
    letters = std::max(letters, parts[i].word.size());
  }
  const double column = std::max(kMinColumn, 24 + kLetterWidth * static_cast<double>(letters));
  const auto columns = std::max<size_t>(1, static_cast<size_t>(kPictureWidth / column));
  Legend legend;
  for (size_t i = 0; i < shown.size(); ++i) {
    const double top = y + kLegendPitch * static_cast<double>(i / columns);
    const double left = column * static_cast<double>(i % columns);
    legend.svg += fmt::format(
        "<rect class=\"part {}\" x=\"{}\" y=\"{}\" width=\"12\" height=\"12\"/>"
        "<text x=\"{}\" y=\"{}\">{}</text>\n",
        shown[i]->css, left, top, left + 18, top + 11, shown[i]->word);
  }
  legend.height = kLegendPitch * static_cast<double>((shown.size() + columns - 1) / columns);
  return legend;
}

std::string name_of_bar(const Measurement& m) {
  const auto value = [&](const char* key) {
    const auto found = m.parameters.find(key);
    return found == m.parameters.end() ? std::string("-") : found->second;
  };
  return fmt::format("{} over {}, devices {}", value(parameter::kMode), value(parameter::kBackend),
                     value(parameter::kDevices));
}

}  // namespace

std::string stacked_bars(std::span<const BarPart> parts, const std::vector<StepBar>& all) {
  std::vector<StepBar> bars;
  double longest = 0;
  std::string words;
  for (const StepBar& bar : all) {
    const double length = length_of(bar);
    if (length == 0 || bars.size() == kMaxBars) continue;
    bars.push_back(bar);
    longest = std::max(longest, length);
    words += (words.empty() ? "" : "; ") + words_of(parts, bar);
  }
  if (bars.empty()) return "";
  std::string svg;
  for (size_t i = 0; i < bars.size(); ++i)
    svg += drawn(parts, bars[i], kBarPitch * static_cast<double>(i), longest);
  const double below = kBarPitch * static_cast<double>(bars.size()) + 6;
  const Legend legend = legend_of(parts, bars, below);
  return fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n{}{}</svg>\n",
                     kPictureWidth, below + legend.height, escaped(words, 4000), svg, legend.svg);
}

std::string step_bars(const HtmlGroup& group) {
  std::vector<BarPart> parts;
  for (size_t i = 0; i < std::size(kStepParts); ++i)
    parts.push_back({kStepParts[i].word, fmt::format("s{}", i)});
  std::vector<StepBar> bars;
  for (const Measurement* m : group.rows) {
    StepBar bar{.name = name_of_bar(*m), .seconds = {}};
    for (const StepPart& part : kStepParts) {
      const auto found = m->metrics.find(std::string("profile_") + part.name);
      bar.seconds.push_back(found == m->metrics.end() ? 0 : found->second.value);
    }
    bars.push_back(bar);
  }
  return stacked_bars(parts, bars);
}

}  // namespace howmany::reports
