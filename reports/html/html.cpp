// SPDX-License-Identifier: Apache-2.0
#include "reports/html/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include <embedded/reports/html/page.css.h>
#include "core/base/schema/context.h"
#include "core/base/schema/labels.h"
#include "core/base/schema/marks.h"
#include "core/base/schema/parameters.h"
#include "core/base/text/escape.h"
#include "core/base/text/format.h"
#include "reports/gpus/beyond.h"
#include "reports/gpus/render.h"
#include "reports/html/gpus_section.h"
#include "reports/html/groups.h"
#include "reports/html/step_bars.h"
#include "reports/html/why_section.h"
#include "reports/results/plain_json.h"

namespace howmany::reports {
namespace {

using PlainJson = nlohmann::json;

constexpr const char* kBeyond = "beyond";  // after the others, unless they have no answer
constexpr const char* kWhy = "why";        // after all
constexpr size_t kMaxNotes = 100, kMaxContext = 120, kMaxMarks = 40, kMaxCell = 120;

std::string tagged(const char* tag, const char* kind, const std::string& text) {
  const std::string start = *kind == '\0' ? tag : fmt::format("{} class=\"{}\"", tag, kind);
  return fmt::format("<{}>{}</{}>\n", start, text, tag);
}

std::string notes_of(const PlainJson& answer) {
  const PlainJson& notes = json_member(answer, "notes");
  if (!notes.is_array() || notes.empty()) return "";
  std::string html = "<ul>\n";
  for (size_t i = 0; i < std::min(notes.size(), kMaxNotes); ++i)
    html += tagged("li", "", escaped(json_text(notes[i])));
  if (notes.size() > kMaxNotes)
    html += tagged("li", "mark", fmt::format("{} more are left out", notes.size() - kMaxNotes));
  return html + "</ul>\n";
}

std::string one_answer(const PlainJson& answer, const PlainJson& whole) {
  std::string html = tagged("p", "because", escaped(json_text(json_member(answer, "because"))));
  const PlainJson& recommended = json_member(answer, "recommended");
  const std::string what =
      recommended.is_null() ? "no single answer" : "<b>" + escaped(json_text(recommended)) + "</b>";
  const PlainJson& certain = json_member(answer, "certain");
  const bool uncertain = certain.is_boolean() && !certain.get<bool>();
  html += tagged(
      "p", "",
      "Recommended: " + what + (uncertain ? " <span class=\"mark\">(uncertain)</span>" : ""));
  for (const char* line : {"pytorch", "slurm"})
    if (const PlainJson& text = json_member(answer, line); text.is_string() && text != "")
      html += "<p><code>" + escaped(text.get<std::string>()) + "</code></p>\n";
  return html + gpus_table(answer, whole) + notes_of(answer);
}

std::string question(const std::string& name) {
  return name == "gpus"       ? "How many devices"
         : name == "workers"  ? "How many loader workers"
         : name == "backend"  ? "Which communication backend"
         : name == "transfer" ? "What moving data costs"
                              : name;
}

// Renders one answer for each model.
std::string answers_of(const std::string& name, const PlainJson& answer) {
  std::string html = tagged("h2", "", escaped(question(name)));
  const PlainJson& cases = json_member(answer, "cases");
  if (!cases.is_array() || cases.empty()) return html + one_answer(answer, answer);
  for (size_t i = 0; i < std::min(cases.size(), kMaxHtmlTables); ++i)
    html += tagged("h3", "", escaped(json_text(json_member(cases[i], "model")))) +
            one_answer(cases[i], answer);
  return html;
}

std::string beyond_section(const PlainJson& beyond) {
  const std::string html = tagged("h2", "", "More devices than were measured");
  const PlainJson& refused = json_member(beyond, "refused");
  if (refused.is_string())
    return html + tagged("p", "because", "No answer: " + escaped(refused.get<std::string>()) + ".");
  return html + tagged("p", "because", escaped(json_text(json_member(beyond, "because")))) +
         beyond_table(beyond) + notes_of(beyond);
}

using Marks = std::map<std::string, std::vector<const Measurement*>>;

// Groups flags by the text before the colon, because the reasons after it vary.
Marks marks_of(const std::vector<Measurement>& measurements) {
  Marks marks;
  for (const Measurement& m : measurements)
    for (const std::string& flag : m.flags) marks[flag.substr(0, flag.find(':'))].push_back(&m);
  return marks;
}

// Lists the flags next to the answer, so that readers see its quality.
std::string marks_line(const Summary& summary, const Marks& marks) {
  if (marks.empty()) return "";
  std::string told;
  for (const auto& [mark, of] : marks) {
    if (told.size() > 400) break;
    told += fmt::format("{}{} {}{}", told.empty() ? "" : ", ", of.size(),
                        mark.ends_with(" rounds") ? "got " : "", escaped(mark, kMaxCell));
  }
  return tagged("p", "mark",
                fmt::format("Of {}: {} (<a href=\"#marks\">marks</a>)",
                            number(std::ssize(summary.measurements), "measurement"), told));
}

// Describes the devices of the first model, as on the terminal.
std::string devices_line(const Summary& summary) {
  for (const Measurement& m : summary.measurements) {
    if (m.suite != "speedup" || !m.parameters.contains("device_list")) continue;
    const auto model = m.parameters.find(parameter::kModel);
    const std::string note =
        model == m.parameters.end() ? "" : devices_note(summary, model->second);
    return note.empty() ? "" : tagged("p", "mark", escaped(note));
  }
  return "";
}

std::string answer_section(const Summary& summary, const Marks& marks) {
  std::string html;
  for (const auto& [name, answer] : summary.answer.items())
    if (name != kBeyond && name != kWhy) html += answers_of(name, answer);
  const PlainJson& beyond = json_member(summary.answer, kBeyond);
  if (beyond.is_object())
    html = is_beyond_first(summary.answer) ? beyond_section(beyond) + html
                                           : html + beyond_section(beyond);
  html += why_section(json_member(summary.answer, kWhy));
  if (html.empty()) html = tagged("p", "because", "This summary holds no answer.");
  return html + devices_line(summary) + marks_line(summary, marks) + job_script_section(summary);
}

std::string charts_section(const std::vector<HtmlGroup>& groups) {
  std::string html;
  for (const HtmlGroup& group : groups) {
    for (const Chart& chart : charts_of(group)) html += figure(chart.title, to_svg(chart));
    html += figure(group.title + ": parts of a step", step_bars(group));
  }
  if (html.empty()) return "";
  return "<h2>Charts</h2>\n<div class=\"charts\">\n" + html +
         "</div>\n<p class=\"soft\">Bars: intervals at 95 %. What failed, was skipped or is not "
         "defined has no point.</p>\n";
}

std::string cell(const Metric& metric) {
  std::string text = escaped(value_text(metric.value, metric.unit), kMaxCell);
  std::string more;
  if (metric.low && metric.high)
    more = fmt::format("{} to {}", value_text(*metric.low, metric.unit),
                       value_text(*metric.high, metric.unit));
  if (metric.n > 0)
    more += fmt::format("{}n = {}{}", more.empty() ? "" : "; ", metric.n,
                        metric.basis.empty() ? "" : " " + metric.basis);
  return more.empty() ? text : text + "<small>" + escaped(more, kMaxCell) + "</small>";
}

std::string row_of(const HtmlGroup& group, const Measurement& m) {
  std::string html;
  if (group.varying.empty()) html += "<td>" + escaped(m.name, kMaxCell) + "</td>";
  for (const std::string& key : group.varying) {
    const auto found = m.parameters.find(key);
    const std::string text = found == m.parameters.end() ? "-" : found->second;
    html += "<td>" + escaped(parameter_text(key, text), kMaxCell) + "</td>";
  }
  for (const std::string& name : group.metrics) {
    const auto found = m.metrics.find(name);
    html += "<td>" + (found == m.metrics.end() ? "-" : cell(found->second)) + "</td>";
  }
  std::string flags;
  for (const std::string& flag : m.flags)
    if (flags.size() < kMaxCell * 2) flags += (flags.empty() ? "" : "; ") + flag;
  html += "<td class=\"mark\">" + escaped(flags, kMaxCell * 2) + "</td>";
  return fmt::format("<tr{} title=\"{}\">{}</tr>\n", m.flags.empty() ? "" : " class=\"marked\"",
                     escaped(m.name, kMaxCell), html);
}

std::string table_of(const HtmlGroup& group, size_t& rows_left) {
  std::string head = group.varying.empty() ? "<th scope=\"col\">case</th>" : "";
  for (const auto* names : {&group.varying, &group.metrics})
    for (const std::string& name : *names)
      head += "<th scope=\"col\">" + escaped(label_of(name), kMaxCell) + "</th>";
  std::string html = tagged("h3", "", escaped(group.title, kMaxCell));
  if (!group.constants.empty()) html += tagged("p", "soft", escaped(group.constants));
  html += "<div class=\"scroll\"><table>\n<thead><tr>" + head +
          "<th scope=\"col\">marks</th></tr></thead>\n<tbody>\n";
  const size_t shown = std::min(rows_left, group.rows.size());
  for (size_t i = 0; i < shown; ++i) html += row_of(group, *group.rows[i]);
  rows_left -= shown;
  html += "</tbody></table></div>\n";
  if (shown == group.rows.size()) return html;
  return html + tagged("p", "mark",
                       fmt::format("{} rows are left out: summary.csv has them",
                                   group.rows.size() - shown));
}

std::string tables_section(const std::vector<HtmlGroup>& groups, size_t left_out) {
  if (groups.empty()) return "";
  size_t rows_left = kMaxHtmlRows;
  std::string html = "<h2>Tables</h2>\n";
  for (const HtmlGroup& group : groups) html += table_of(group, rows_left);
  if (left_out > 0)
    html += tagged("p", "mark",
                   fmt::format("Left out, {} of further tables: summary.csv has them",
                               number(static_cast<int64_t>(left_out), "measurement")));
  return html +
         "<p class=\"soft\">Under a value: its interval at 95 % and its samples. All metrics "
         "with all digits: summary.csv and summary.json.</p>\n";
}

std::string context_row(const std::string& key, const PlainJson& value) {
  return fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td></tr>\n",
                     escaped(label_of(key), kMaxCell), escaped(json_text(value), 300));
}

// The most important keys of the context, shown first.
constexpr std::array<const char*, 16> kFirstKeys = {"howmany_date",
                                                    "host_name",
                                                    context::kCpu,
                                                    context::kCoresAllowed,
                                                    context::kMemoryBytes,
                                                    context::kGpu,
                                                    context::kDriver,
                                                    "cuda",
                                                    "nccl",
                                                    context::kLauncher,
                                                    context::kWorld,
                                                    context::kCommit,
                                                    context::kBuildType,
                                                    context::kCompiler,
                                                    context::kGovernor,
                                                    context::kCompilerFlags};

std::string context_rows(const PlainJson& context) {
  std::string html;
  size_t left = kMaxContext;
  for (const char* key : kFirstKeys)
    if (const PlainJson& value = json_member(context, key); !value.is_null())
      html += context_row(key, value);
  for (const auto& [key, value] : context.items()) {
    if (std::ranges::find(kFirstKeys, key) != kFirstKeys.end() || key == "howmany_request")
      continue;
    if (left-- == 0) return html + "<tr><th>...</th><td>more is left out</td></tr>\n";
    html += context_row(key, value);
  }
  return html;
}

std::string asked_rows(const PlainJson& request) {
  std::string html;
  size_t left = kMaxContext;
  if (!request.is_object()) return html;
  for (const auto& [key, value] : request.items())
    if (left > 0) --left, html += context_row("asked: " + label_of(key), value);
  return html;
}

std::string context_section(const Summary& summary) {
  if (!summary.context.is_object() || summary.context.empty()) return "";
  return "<h2>How it was measured</h2>\n<div class=\"scroll\"><table>\n<tbody>\n" +
         context_rows(summary.context) +
         asked_rows(json_member(summary.context, "howmany_request")) + "</tbody></table></div>\n";
}

std::string meaning(const std::string& mark) {
  return mark == mark::kOversubscribed ? "more ranks than cores or GPUs: no measure of scaling"
         : mark == mark::kRehearsal    ? "devices were shared: it shows that it runs, not how fast"
         : mark == "not converged"     ? "the time was up before the interval was tight"
         : mark == "interrupted"       ? "it was ended before it was done"
                                       : "";
}

std::string marks_section(const Marks& marks) {
  std::string html = "<h2 id=\"marks\">Marks</h2>\n";
  if (marks.empty()) return html + "<p>No measurement failed, was skipped or is marked.</p>\n";
  html += "<ul>\n";
  size_t left = kMaxMarks;
  for (const auto& [mark, of] : marks) {
    if (left-- == 0) return html + "<li class=\"mark\">more are left out</li>\n</ul>\n";
    std::string why = meaning(mark);
    for (const std::string& flag : of.front()->flags)
      if (why.empty() && flag.starts_with(mark) && flag != mark) why = "such as " + flag;
    html += tagged("li", "",
                   fmt::format("<span class=\"mark\">{}</span>: {} of the measurements, the first "
                               "{}{}",
                               escaped(mark, kMaxCell), of.size(),
                               escaped(of.front()->suite + "/" + of.front()->name, kMaxCell),
                               why.empty() ? "" : " (" + escaped(why, 300) + ")"));
  }
  return html + "</ul>\n";
}

}  // namespace

std::string page_head() {
  return fmt::format(R"(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>howmany: report</title>
<style>
{}</style>
</head>
<body>
)",
                     embedded::kPageCss);
}

std::string to_html(const Summary& summary) {
  const Marks marks = marks_of(summary.measurements);
  const std::vector<Measurement> workers = workers_rows(summary.answer);
  size_t left_out = 0;
  const std::vector<HtmlGroup> groups = groups_of(summary, workers, kMaxHtmlTables, left_out);
  const PlainJson& date = json_member(summary.context, "howmany_date");
  std::string html = page_head();
  html += "<h1>howmany" + (date.is_string() ? ", " + escaped(json_text(date), 40) : "") + "</h1>\n";
  html += answer_section(summary, marks) + charts_section(groups);
  html += tables_section(groups, left_out) + context_section(summary) + marks_section(marks);
  return html + "</body>\n</html>\n";
}

}  // namespace howmany::reports
