#include "reports/html/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <map>

#include "core/base/schema/context.h"
#include "core/base/schema/marks.h"
#include "core/base/schema/parameters.h"
#include "reports/gpus/render.h"
#include "reports/html/groups.h"

namespace howmany::reports {
namespace {

using PlainJson = nlohmann::json;

constexpr size_t kMostNotes = 100, kMostContext = 120, kMostMarks = 40, kMostCell = 120;

constexpr const char* kHead = R"(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>howmany: report</title>
<style>
:root { --text: #1a1a1a; --page: #fff; --soft: #595959; --line: #d5d5d5; --mark: #8a3b00;
  --marked: #fff3e6; }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--text); background: var(--page);
  max-width: 70rem; margin: 0 auto; padding: 1rem; overflow-wrap: anywhere; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.2rem; border-top: 1px solid var(--line);
  padding-top: .8rem; margin-top: 2rem; } h3 { font-size: 1rem; margin-bottom: .3rem; }
.because { font-size: 1.15rem; font-weight: 600; margin: .3rem 0; }
.mark { color: var(--mark); font-weight: 600; } .soft, small { color: var(--soft); }
.charts { display: flex; flex-wrap: wrap; gap: 1rem; }
figure { flex: 1 1 22rem; max-width: 34rem; margin: 0; break-inside: avoid; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .85rem; overflow-wrap: normal;
  font-variant-numeric: tabular-nums; }
th, td { text-align: left; vertical-align: top; padding: .2rem .6rem .2rem 0;
  border-bottom: 1px solid var(--line); } td small { display: block; white-space: nowrap; }
tr.marked { background: var(--marked); }
svg { width: 100%; height: auto; font: 12px system-ui, sans-serif; fill: var(--text); }
.grid { stroke: var(--line); fill: none; } .guide { stroke: var(--soft); fill: none;
  stroke-dasharray: 1 4; stroke-width: 1.5; stroke-linecap: round; }
.line, .bar { fill: none; stroke: currentColor; stroke-width: 1.5; }
.full { fill: currentColor; } .hollow { fill: var(--page); stroke: currentColor; stroke-width: 2; }
.s0 { color: #0067a5; } .s1 { color: #c04e00; } .s2 { color: #007a5a; } .s3 { color: #a8447f; }
.s4 { color: #5b4ab5; } .s5 { color: #7a6200; }
@media (prefers-color-scheme: dark) {
:root { --text: #e8e8e8; --page: #161616; --soft: #a8a8a8; --line: #3d3d3d; --mark: #ffb070;
  --marked: #33251a; }
.s0 { color: #56b4e9; } .s1 { color: #ff9a4d; } .s2 { color: #3fd0a4; } .s3 { color: #ee9ac8; }
.s4 { color: #b3a6ff; } .s5 { color: #e3c84b; }
}
@media print { body { max-width: none; font-size: 10pt; } .scroll { overflow: visible; }
  tr { break-inside: avoid; } }
</style>
</head>
<body>
)";

std::string dumped(const PlainJson& json) {
  return json.dump(-1, ' ', false, PlainJson::error_handler_t::replace);
}

std::string text_of(const PlainJson& json) {
  return json.is_string() ? json.get<std::string>() : dumped(json);
}

// Returns the member, or a null value if it is missing.
const PlainJson& member(const PlainJson& json, const char* key) {
  static const PlainJson kNull;
  const auto found = json.is_object() ? json.find(key) : json.end();
  return json.is_object() && found != json.end() ? *found : kNull;
}

std::string tagged(const char* tag, const char* kind, const std::string& text) {
  const std::string start = *kind == '\0' ? tag : fmt::format("{} class=\"{}\"", tag, kind);
  return fmt::format("<{}>{}</{}>\n", start, text, tag);
}

std::string notes_of(const PlainJson& answer) {
  const PlainJson& notes = member(answer, "notes");
  if (!notes.is_array() || notes.empty()) return "";
  std::string html = "<ul>\n";
  for (size_t i = 0; i < std::min(notes.size(), kMostNotes); ++i)
    html += tagged("li", "", escaped(text_of(notes[i])));
  if (notes.size() > kMostNotes)
    html += tagged("li", "mark", fmt::format("{} more are left out", notes.size() - kMostNotes));
  return html + "</ul>\n";
}

std::string one_answer(const PlainJson& answer) {
  std::string html = tagged("p", "because", escaped(text_of(member(answer, "because"))));
  const PlainJson& recommended = member(answer, "recommended");
  const std::string what =
      recommended.is_null() ? "no single answer" : "<b>" + escaped(text_of(recommended)) + "</b>";
  const PlainJson& certain = member(answer, "certain");
  const bool uncertain = certain.is_boolean() && !certain.get<bool>();
  html += tagged(
      "p", "",
      "Recommended: " + what + (uncertain ? " <span class=\"mark\">(uncertain)</span>" : ""));
  for (const char* line : {"pytorch", "slurm"})
    if (const PlainJson& text = member(answer, line); text.is_string() && text != "")
      html += "<p><code>" + escaped(text.get<std::string>()) + "</code></p>\n";
  return html + notes_of(answer);
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
  const PlainJson& cases = member(answer, "cases");
  if (!cases.is_array() || cases.empty()) return html + one_answer(answer);
  for (size_t i = 0; i < std::min(cases.size(), kMostHtmlTables); ++i)
    html += tagged("h3", "", escaped(text_of(member(cases[i], "model")))) + one_answer(cases[i]);
  return html;
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
    told += fmt::format("{}{} {}", told.empty() ? "" : ", ", of.size(), escaped(mark, kMostCell));
  }
  return tagged("p", "mark",
                fmt::format("Of {} measurements: {} (<a href=\"#marks\">what was marked</a>)",
                            summary.measurements.size(), told));
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
  for (const auto& [name, answer] : summary.answer.items()) html += answers_of(name, answer);
  if (html.empty()) html = tagged("p", "because", "This summary holds no answer.");
  return html + devices_line(summary) + marks_line(summary, marks);
}

std::string charts_section(const std::vector<HtmlGroup>& groups) {
  std::string html;
  for (const HtmlGroup& group : groups)
    for (const Chart& chart : charts_of(group))
      if (const std::string svg = to_svg(chart); !svg.empty())
        html += "<figure><figcaption>" + escaped(chart.title, 200) + "</figcaption>\n" + svg +
                "</figure>\n";
  if (html.empty()) return "";
  return "<h2>Charts</h2>\n<div class=\"charts\">\n" + html +
         "</div>\n<p class=\"soft\">Bars: intervals at 95 %. What failed, was skipped or is not "
         "defined has no point.</p>\n";
}

std::string cell(const Metric& metric) {
  std::string text = escaped(value_text(metric.value, metric.unit), kMostCell);
  std::string more;
  if (metric.low && metric.high)
    more = fmt::format("{} to {}", value_text(*metric.low, metric.unit),
                       value_text(*metric.high, metric.unit));
  if (metric.n > 0)
    more += fmt::format("{}n = {}{}", more.empty() ? "" : "; ", metric.n,
                        metric.basis.empty() ? "" : " " + metric.basis);
  return more.empty() ? text : text + "<small>" + escaped(more, kMostCell) + "</small>";
}

std::string row_of(const HtmlGroup& group, const Measurement& m) {
  std::string html = "<td>" + escaped(m.name, kMostCell) + "</td>";
  for (const std::string& key : group.varying) {
    const auto found = m.parameters.find(key);
    const std::string text = found == m.parameters.end() ? "-" : found->second;
    html += "<td>" + escaped(parameter_text(key, text), kMostCell) + "</td>";
  }
  for (const std::string& name : group.metrics) {
    const auto found = m.metrics.find(name);
    html += "<td>" + (found == m.metrics.end() ? "-" : cell(found->second)) + "</td>";
  }
  std::string flags;
  for (const std::string& flag : m.flags)
    if (flags.size() < kMostCell * 2) flags += (flags.empty() ? "" : "; ") + flag;
  html += "<td class=\"mark\">" + escaped(flags, kMostCell * 2) + "</td>";
  return fmt::format("<tr{}>{}</tr>\n", m.flags.empty() ? "" : " class=\"marked\"", html);
}

std::string table_of(const HtmlGroup& group, size_t& rows_left) {
  std::string head = "<th scope=\"col\">case</th>";
  for (const auto* names : {&group.varying, &group.metrics})
    for (const std::string& name : *names)
      head += "<th scope=\"col\">" + escaped(name, kMostCell) + "</th>";
  std::string html = tagged("h3", "", escaped(group.title, kMostCell));
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
  size_t rows_left = kMostHtmlRows;
  std::string html = "<h2>Tables</h2>\n";
  for (const HtmlGroup& group : groups) html += table_of(group, rows_left);
  if (left_out > 0)
    html += tagged("p", "mark",
                   fmt::format("{} measurements of further tables are left out: summary.csv has "
                               "them",
                               left_out));
  return html +
         "<p class=\"soft\">Under a value: its interval at 95 % and what it stands on. All metrics "
         "with all digits: summary.csv and summary.json.</p>\n";
}

std::string context_row(const std::string& key, const PlainJson& value) {
  return fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td></tr>\n", escaped(key, kMostCell),
                     escaped(text_of(value), 300));
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
  size_t left = kMostContext;
  for (const char* key : kFirstKeys)
    if (const PlainJson& value = member(context, key); !value.is_null())
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
  size_t left = kMostContext;
  if (!request.is_object()) return html;
  for (const auto& [key, value] : request.items())
    if (left > 0) --left, html += context_row("asked: " + key, value);
  return html;
}

std::string context_section(const Summary& summary) {
  if (!summary.context.is_object() || summary.context.empty()) return "";
  return "<h2>How it was measured</h2>\n<div class=\"scroll\"><table>\n<tbody>\n" +
         context_rows(summary.context) + asked_rows(member(summary.context, "howmany_request")) +
         "</tbody></table></div>\n";
}

std::string meaning(const std::string& mark) {
  return mark == mark::kOversubscribed ? "more ranks than cores or GPUs: no measure of scaling"
         : mark == mark::kRehearsal    ? "devices were shared: it shows that it runs, not how fast"
         : mark == "not converged"     ? "the time was up before the interval was tight"
         : mark == "interrupted"       ? "it was ended before it was done"
                                       : "";
}

std::string marks_section(const Marks& marks) {
  std::string html = "<h2 id=\"marks\">What was marked</h2>\n";
  if (marks.empty()) return html + "<p>No measurement failed, was skipped or is marked.</p>\n";
  html += "<ul>\n";
  size_t left = kMostMarks;
  for (const auto& [mark, of] : marks) {
    if (left-- == 0) return html + "<li class=\"mark\">more are left out</li>\n</ul>\n";
    std::string why = meaning(mark);
    for (const std::string& flag : of.front()->flags)
      if (why.empty() && flag.starts_with(mark) && flag != mark) why = "such as " + flag;
    html += tagged("li", "",
                   fmt::format("<span class=\"mark\">{}</span>: {} of the measurements, the first "
                               "{}{}",
                               escaped(mark, kMostCell), of.size(),
                               escaped(of.front()->suite + "/" + of.front()->name, kMostCell),
                               why.empty() ? "" : " (" + escaped(why, 300) + ")"));
  }
  return html + "</ul>\n";
}

}  // namespace

std::string to_html(const Summary& summary) {
  const Marks marks = marks_of(summary.measurements);
  const std::vector<Measurement> workers = workers_rows(summary.answer);
  size_t left_out = 0;
  const std::vector<HtmlGroup> groups = groups_of(summary, workers, kMostHtmlTables, left_out);
  const PlainJson& date = member(summary.context, "howmany_date");
  std::string html = kHead;
  html += "<h1>howmany" + (date.is_string() ? ", " + escaped(text_of(date), 40) : "") + "</h1>\n";
  html += answer_section(summary, marks) + charts_section(groups);
  html += tables_section(groups, left_out) + context_section(summary) + marks_section(marks);
  return html + "</body>\n</html>\n";
}

}  // namespace howmany::reports
