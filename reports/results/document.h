// SPDX-License-Identifier: Apache-2.0
// A text of headings, paragraphs, tables, code and plots, for Markdown or LaTeX. Its members may
// hold text from untrusted files: to_markdown() and to_latex() (latex.h) escape and shorten it.
// Values only; not tied to any thread.
//
//   Document text = {Heading{2, "Method"}, Paragraph{"Each run is a fresh process."}};
//   to_markdown(text);
#pragma once

#include <string>
#include <variant>
#include <vector>

namespace howmany::reports {

constexpr size_t kMaxDocumentText = 1000;  // characters of a paragraph or a cell

struct Heading {
  int level = 2;
  std::string text;
};
struct Paragraph {
  std::string text;
};
struct Items {
  std::vector<std::string> lines;
};
struct DocumentTable {
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows;
};
struct ShellLines {
  std::vector<std::string> lines;  // of a shell
};
struct Plot {
  std::string caption;
  std::string name;  // of its SVG, without ".svg"
};

using Document =
    std::vector<std::variant<Heading, Paragraph, Items, DocumentTable, ShellLines, Plot>>;

std::string to_markdown(const Document& document);

}  // namespace howmany::reports
