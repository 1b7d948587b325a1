// SPDX-License-Identifier: Apache-2.0
#include "reports/results/document.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/text/markdown.h"
#include "core/base/text/table.h"

namespace howmany::reports {
namespace {

std::string shown_in_markdown(const std::string& text) {
  return escaped_markdown(shortened(text, kMaxDocumentText));
}

class MarkdownWriter {
 public:
  void operator()(const Heading& heading) {
    text += fmt::format("{} {}\n", std::string(static_cast<size_t>(heading.level), '#'),
                        shown_in_markdown(heading.text));
  }
  void operator()(const Paragraph& paragraph) { text += shown_in_markdown(paragraph.text) + "\n"; }
  void operator()(const Items& items) {
    for (const std::string& line : items.lines) text += "- " + shown_in_markdown(line) + "\n";
  }
  void operator()(const DocumentTable& table) {
    add_row(table.head);
    text += fmt::format("| {} |\n",
                        fmt::join(std::vector<std::string>(table.head.size(), "--:"), " | "));
    for (const std::vector<std::string>& row : table.rows) add_row(row);
  }
  void operator()(const ShellLines& commands) {
    text += "```sh\n";
    for (const std::string& line : commands.lines) text += without_controls(line) + "\n";
    text += "```\n";
  }
  void operator()(const Plot& plot) {
    text += fmt::format("![{}]({}.svg)\n", shown_in_markdown(plot.caption), plot.name);
  }

  std::string text;

 private:
  void add_row(const std::vector<std::string>& cells) {
    std::vector<std::string> shown;
    for (const std::string& cell : cells) shown.push_back(shown_in_markdown(cell));
    text += fmt::format("| {} |\n", fmt::join(shown, " | "));
  }
};

}  // namespace

std::string to_markdown(const Document& document) {
  MarkdownWriter writer;
  for (const auto& part : document) {
    if (!writer.text.empty()) writer.text += "\n";
    std::visit(writer, part);
  }
  return writer.text;
}

}  // namespace howmany::reports
