// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "core/base/text/markdown.h"
#include "core/base/text/table.h"
#include "reports/regression/text.h"
#include "reports/regression/writer.h"

namespace howmany::reports {
namespace {

constexpr int64_t kMaxOpenRows = 50, kMaxFoldedRows = 150;
constexpr size_t kMaxCellColumns = 160;  // a comment holds 64 KiB

std::string cell(const std::string& text) {
  return escaped_markdown(shortened(text, kMaxCellColumns));
}

const char* mark(Verdict verdict) {
  if (verdict == Verdict::kSlower || verdict == Verdict::kFailed) return "&#x274C; ";
  return verdict == Verdict::kFaster ? "&#x2705; " : "";
}

std::string line(const Row& row) {
  return fmt::format("| {}{} | {} | {} | {} | {} | {} | {} |\n", mark(row.verdict),
                     name_of(row.verdict), cell(title(row)), value_text(row, row.base),
                     value_text(row, row.candidate), change_text(row), interval_text(row.interval),
                     samples_text(row));
}

std::string table(const std::vector<const Row*>& rows, int64_t max_rows) {
  std::string text =
      "| verdict | benchmark | base | candidate | change | 95 % | n |\n"
      "|---|---|--:|--:|--:|--:|--:|\n";
  const auto all = static_cast<int64_t>(rows.size());
  for (int64_t i = 0; i < std::min(max_rows, all); ++i) text += line(*rows[static_cast<size_t>(i)]);
  if (all > max_rows) text += fmt::format("\n... and {} more.\n", all - max_rows);
  return text;
}

}  // namespace

std::string as_markdown(const Comparison& c) {
  std::vector<const Row*> open, folded;
  for (const Row& row : c.rows) (row.verdict == Verdict::kSame ? folded : open).push_back(&row);
  std::string text = "### " + cell(headline(c)) + "\n\n";
  if (!open.empty()) text += table(open, kMaxOpenRows) + "\n";
  for (const auto& [was, is] : c.renamed) {
    text += fmt::format("- {} may have been renamed to {}\n", cell(was), cell(is));
  }
  if (!folded.empty()) {
    text += fmt::format("\n<details><summary>{} unchanged</summary>\n\n{}\n</details>\n",
                        folded.size(), table(folded, kMaxFoldedRows));
  }
  for (const std::string& note : c.notes) text += "\n> " + cell(note) + "\n";
  for (const std::string& field : c.likeness.decisive) {
    text += "\n> not alike: " + cell(field) + "\n";
  }
  return text + "\n<sub>" + method(c) + "</sub>\n";
}

}  // namespace howmany::reports
