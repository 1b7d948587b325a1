// SPDX-License-Identifier: Apache-2.0
#include "reports/results/latex.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "core/base/text/table.h"
#include "core/base/text/utf8.h"

namespace howmany::reports {
namespace {

constexpr size_t kMaxColumns = 6;  // of a table that a page holds as it is

// Returns the LaTeX of a character of ASCII.
std::string latex_of(char c) {
  switch (c) {
    case '\\':
      return "\\textbackslash{}";
    case '~':
      return "\\textasciitilde{}";
    case '^':
      return "\\textasciicircum{}";
    case '<':
      return "\\textless{}";
    case '>':
      return "\\textgreater{}";
    case '|':
      return "\\textbar{}";
    case '"':
      return "''";
    case '/':
      return "/\\allowbreak{}";  // of addresses and paths
    case '-':
    case '\'':
    case '`':
      return std::string(1, c) + "{}";  // no ligature with the next one
    default:
      break;
  }
  const bool special = std::string_view("{}$&#_%").find(c) != std::string_view::npos;
  return special ? std::string("\\") + c : std::string(1, c);
}

// The letters of U+00C0 to U+00FF that the fonts of plain LaTeX have.
bool is_known_letter(std::string_view character) {
  constexpr std::string_view kUnknown = "\u00D0\u00D7\u00DE\u00F0\u00F7\u00FE";
  return character.size() == 2 && character[0] == '\xC3' &&
         kUnknown.find(character) == std::string_view::npos;
}

std::string shown_in_latex(const std::string& text) {
  return escaped_latex(shortened(text, kMaxDocumentText));
}

// Code may hold any text but the end of its environment.
std::string verbatim(const std::string& line) {
  std::string text = without_controls(line);
  std::ranges::replace_if(
      text, [](unsigned char c) { return c >= 0x80; }, '?');
  for (size_t at = 0; (at = text.find("\\end", at)) != std::string::npos; at += 5)
    text.insert(at + 4, " ");
  return text;
}

class LatexWriter {
 public:
  void operator()(const Heading& heading) {
    text += fmt::format("\\{}section*{{{}}}\n", heading.level < 3 ? "" : "sub",
                        shown_in_latex(heading.text));
  }
  void operator()(const Paragraph& paragraph) { text += shown_in_latex(paragraph.text) + "\n"; }
  void operator()(const Items& items) {
    if (items.lines.empty()) return;
    text += "\\begin{itemize}\n";
    for (const std::string& line : items.lines) text += "\\item {}" + shown_in_latex(line) + "\n";
    text += "\\end{itemize}\n";
  }
  void operator()(const DocumentTable& table) {
    const bool wide = table.head.size() > kMaxColumns;
    text += fmt::format("\\begin{{center}}\\footnotesize\n{}\\begin{{tabular}}{{{}}}\n\\hline\n",
                        wide ? "\\resizebox{\\linewidth}{!}{" : "",
                        std::string(table.head.size(), 'r'));
    add_row(table.head);
    text += "\\hline\n";
    for (const std::vector<std::string>& row : table.rows) add_row(row);
    text += fmt::format("\\hline\n\\end{{tabular}}{}\n\\end{{center}}\n", wide ? "}" : "");
  }
  void operator()(const ShellLines& commands) {
    text += "\\begin{verbatim}\n";
    for (const std::string& line : commands.lines) text += verbatim(line) + "\n";
    text += "\\end{verbatim}\n";
  }
  void operator()(const Plot& plot) {
    text += fmt::format(
        "\\begin{{center}}\n"
        "% rsvg-convert -f pdf -o {0}.pdf {0}.svg\n"
        "\\IfFileExists{{{0}.pdf}}{{\\includegraphics[width=\\linewidth]{{{0}.pdf}}}}"
        "{{\\texttt{{{1}.svg}}}}\\\\\n{2}\n\\end{{center}}\n",
        plot.name, escaped_latex(plot.name), shown_in_latex(plot.caption));
  }

  std::string text;

 private:
  // {}: else a cell that begins with "[" would be an argument of the row's end.
  void add_row(const std::vector<std::string>& cells) {
    std::vector<std::string> shown;
    for (const std::string& cell : cells) shown.push_back(shown_in_latex(cell));
    text += fmt::format("{{}}{} \\\\\n", fmt::join(shown, " & "));
  }
};

}  // namespace

std::string escaped_latex(const std::string& text) {
  const std::string plain = without_controls(text);
  std::string safe;
  for (size_t at = 0; at < plain.size();) {
    const size_t length = std::max<size_t>(1, utf8_length(plain, at));
    const std::string_view character = std::string_view(plain).substr(at, length);
    if (length == 1)
      safe += static_cast<unsigned char>(plain[at]) < 0x80 ? latex_of(plain[at]) : "?";
    else
      safe += is_known_letter(character) ? std::string(character) : "?";
    at += length;
  }
  return safe;
}

std::string to_latex(const Document& document) {
  LatexWriter writer;
  for (const auto& part : document) {
    if (!writer.text.empty()) writer.text += "\n";
    std::visit(writer, part);
  }
  return writer.text;
}

}  // namespace howmany::reports
