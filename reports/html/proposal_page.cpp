// SPDX-License-Identifier: Apache-2.0
#include "reports/html/proposal_page.h"

#include <fmt/format.h>

#include "core/base/text/escape.h"
#include "reports/gpus/proposal.h"
#include "reports/html/chart.h"
#include "reports/html/groups.h"
#include "reports/html/html.h"
#include "reports/results/document.h"

namespace howmany::reports {
namespace {

constexpr size_t kMostLine = 10'000;  // characters of a command

std::string shown_in_page(const std::string& text) { return escaped(text, kMostDocumentText); }

class PageWriter {
 public:
  void operator()(const Heading& heading) {
    text += fmt::format("<h{0}>{1}</h{0}>\n", heading.level, shown_in_page(heading.text));
  }
  void operator()(const Paragraph& paragraph) {
    text += "<p>" + shown_in_page(paragraph.text) + "</p>\n";
  }
  void operator()(const Items& items) {
    text += "<ul>\n";
    for (const std::string& line : items.lines) text += "<li>" + shown_in_page(line) + "</li>\n";
    text += "</ul>\n";
  }
  void operator()(const DocumentTable& table) {
    text += "<div class=\"scroll\"><table>\n<thead><tr>" + cells_of(table.head, "th") +
            "</tr></thead>\n<tbody>\n";
    for (const std::vector<std::string>& row : table.rows)
      text += "<tr>" + cells_of(row, "td") + "</tr>\n";
    text += "</tbody></table></div>\n";
  }
  void operator()(const ShellLines& commands) {
    text += "<div class=\"scroll\"><pre>";
    for (const std::string& line : commands.lines) text += escaped(line, kMostLine) + "\n";
    text += "</pre></div>\n";
  }

  std::string text;

 private:
  static std::string cells_of(const std::vector<std::string>& cells, const char* tag) {
    std::string html;
    for (const std::string& cell : cells)
      html += fmt::format("<{0}>{1}</{0}>", tag, shown_in_page(cell));
    return html;
  }
};

// Measured rows only.
std::string charts_of_run(const Summary& run) {
  size_t left_out = 0;
  std::string html;
  for (const HtmlGroup& group : groups_of(run, {}, kMostHtmlTables, left_out))
    if (group.suite == "speedup")
      for (const Chart& chart : charts_of(group)) html += figure(chart.title, to_svg(chart));
  return html.empty() ? "" : "<div class=\"charts\">\n" + html + "</div>\n";
}

}  // namespace

std::string proposal_page(const std::vector<Summary>& runs, const AdviceOptions& options) {
  std::string html = page_head() + "<h1>Scaling</h1>\n";
  for (const Summary& run : runs) {
    PageWriter writer;
    for (const auto& part : proposal_of(run, options)) std::visit(writer, part);
    html += writer.text + charts_of_run(run);
  }
  return html + "</body>\n</html>\n";
}

}  // namespace howmany::reports
