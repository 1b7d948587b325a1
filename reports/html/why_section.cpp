// SPDX-License-Identifier: Apache-2.0
#include "reports/html/why_section.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "core/base/text/escape.h"
#include "core/base/text/format.h"
#include "reports/html/chart.h"
#include "reports/html/step_bars.h"
#include "reports/results/plain_json.h"
#include "reports/why/parts.h"

namespace howmany::reports {
namespace {

using PlainJson = nlohmann::json;

constexpr size_t kMaxHelps = 20, kMaxCellText = 120, kMaxPaste = 300;
constexpr LossPart kOrder[] = {LossPart::kData,    LossPart::kExchange,  LossPart::kCompute,
                               LossPart::kSlowest, LossPart::kMachinery, LossPart::kOutside,
                               LossPart::kEpochs,  LossPart::kRest};
static_assert(std::size(kOrder) == kParts);

// The rows of `counts`; not more than there are bars.
std::vector<const PlainJson*> counts_of(const PlainJson& why) {
  std::vector<const PlainJson*> all;
  const PlainJson& counts = json_member(why, "counts");
  for (size_t i = 0; counts.is_array() && i < std::min(counts.size(), kMaxBars); ++i)
    all.push_back(&counts[i]);
  return all;
}

const PlainJson& part_in(const PlainJson& count, LossPart part) {
  static const PlainJson kNone;
  const PlainJson& parts = json_member(count, "parts");
  for (size_t i = 0; parts.is_array() && i < std::min<size_t>(parts.size(), kParts); ++i)
    if (json_member(parts[i], "part") == name_of(part)) return parts[i];
  return kNone;
}

double seconds_in(const PlainJson& json, const char* key) {
  return json_number(json, key).value_or(0);
}

std::string refusal_of(const PlainJson& count) {
  const PlainJson& refused = json_member(count, "refused");
  return refused.is_string() ? refused.get<std::string>() : "";
}

// "mlp, ddp over gloo"
std::string name_of_row(const PlainJson& count) {
  const PlainJson& model = json_member(count, "model");
  return fmt::format("{}{} over {}", model.is_string() ? model.get<std::string>() + ", " : "",
                     json_text(json_member(count, "mode")),
                     json_text(json_member(count, "backend")));
}

std::string name_of_count(const PlainJson& count) {
  return fmt::format("{}, devices {}", name_of_row(count),
                     json_text(json_member(count, "devices")));
}

// A step that is not divided is drawn as the useful time and the rest.
StepBar bar_of(const PlainJson& count) {
  StepBar bar{name_of_count(count), {seconds_in(count, "ideal_s")}, seconds_in(count, "step_s")};
  for (const LossPart part : kOrder) {
    const bool undivided = !refusal_of(count).empty();
    bar.seconds.push_back(!undivided                ? seconds_in(part_in(count, part), "seconds")
                          : part == LossPart::kRest ? seconds_in(count, "lost_s")
                                                    : 0);
  }
  return bar;
}

std::string bars_of(const std::vector<const PlainJson*>& counts) {
  std::vector<BarPart> parts = {{"useful", "ideal"}};
  for (size_t i = 0; i < std::size(kOrder); ++i)
    parts.push_back(
        {word_of(kOrder[i]), kOrder[i] == LossPart::kRest ? "rest" : fmt::format("s{}", i)});
  std::vector<StepBar> bars;
  for (const PlainJson* count : counts) bars.push_back(bar_of(*count));
  return figure("Where the time of a step goes", stacked_bars(parts, bars));
}

std::string head_of(const std::vector<std::string>& titles) {
  std::string html = "<div class=\"scroll\"><table>\n<thead><tr>";
  for (const std::string& title : titles) html += fmt::format("<th scope=\"col\">{}</th>", title);
  return html + "</tr></thead>\n<tbody>\n";
}

std::string cell_of(const std::string& text) {
  return "<td>" + escaped(text, kMaxCellText) + "</td>";
}

std::string signed_seconds(double value) {
  return value < 0 ? "-" + format_seconds(-value) : format_seconds(value);
}

std::string time_cell(const PlainJson& json, const char* seconds, const char* error, double step) {
  const auto value = json_number(json, seconds);
  if (!value) return cell_of("-");
  std::string small = step > 0 ? format_percent(*value / step) : "";
  if (const auto of = json_number(json, error); of && *of > 0)
    small += fmt::format("{}\u00b1 {}", small.empty() ? "" : "; ", format_seconds(*of));
  return fmt::format("<td class=\"time\">{}<small>{}</small></td>", signed_seconds(*value), small);
}

std::string parts_table(const std::vector<const PlainJson*>& counts) {
  std::vector<LossPart> shown;
  for (const LossPart part : kOrder)
    if (std::ranges::any_of(counts, [&](auto* c) { return !part_in(*c, part).is_null(); }))
      shown.push_back(part);
  std::vector<std::string> titles = {"devices", "case", "step", "lost"};
  for (const LossPart part : shown) titles.emplace_back(word_of(part));
  std::string html = head_of(titles);
  for (const PlainJson* count : counts) {
    const double step = seconds_in(*count, "step_s");
    html += "<tr>" + cell_of(json_text(json_member(*count, "devices"))) +
            cell_of(name_of_row(*count)) + time_cell(*count, "step_s", "", 0) +
            time_cell(*count, "lost_s", "", step);
    for (const LossPart part : shown)
      html += time_cell(part_in(*count, part), "seconds", "error_s", step);
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

std::string refusals_of(const std::vector<const PlainJson*>& counts) {
  std::string html;
  for (const PlainJson* count : counts)
    if (const std::string refused = refusal_of(*count); !refused.empty())
      html += fmt::format("<p class=\"mark\">{}: not divided, because {}</p>\n",
                          escaped(name_of_count(*count), kMaxCellText), escaped(refused));
  return html;
}

std::string helps_of(const std::vector<const PlainJson*>& counts) {
  std::string rows;
  for (const PlainJson* count : counts) {
    const PlainJson& helps = json_member(*count, "help");
    const double step = seconds_in(*count, "step_s");
    for (size_t i = 0; helps.is_array() && i < std::min(helps.size(), kMaxHelps); ++i)
      rows += "<tr>" + cell_of(json_text(json_member(*count, "devices"))) +
              cell_of(name_of_row(*count)) + time_cell(helps[i], "gain_s", "error_s", step) +
              cell_of(json_text(json_member(helps[i], "evidence"))) +
              fmt::format("<td><code>{}</code></td></tr>\n",
                          escaped(json_text(json_member(helps[i], "paste")), kMaxPaste));
  }
  if (rows.empty()) return "";
  return "<h3>What would help</h3>\n" +
         head_of({"devices", "case", "gain of a step", "evidence", "change"}) + rows +
         "</tbody></table></div>\n";
}

}  // namespace

std::string why_section(const PlainJson& why) {
  if (!why.is_object()) return "";
  const std::vector<const PlainJson*> counts = counts_of(why);
  std::string html = "<h2>Why it does not scale</h2>\n";
  html +=
      fmt::format("<p class=\"because\">{}</p>\n", escaped(json_text(json_member(why, "because"))));
  if (counts.empty()) return html;
  html += "<div class=\"charts\">\n" + bars_of(counts) + "</div>\n" + refusals_of(counts) +
          parts_table(counts) + helps_of(counts);
  if (const auto recording = json_number(why, "recording"))
    html += fmt::format("<p class=\"soft\">Recording cost {} of a step.</p>\n",
                        format_percent(*recording, 2));
  return html;
}

}  // namespace howmany::reports
