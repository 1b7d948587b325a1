// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <set>
#include <string_view>

#include "core/base/text/table.h"
#include "reports/regression/writer.h"
#include "reports/regression/writers/common.h"

namespace howmany::reports {
namespace {

constexpr int64_t kMaxOpenRows = 50, kMaxFoldedRows = 150;
constexpr size_t kMaxCellColumns = 160;    // a comment holds 64 KiB
constexpr const char* kBreak = "&#8203;";  // a zero-width space

// Characters that are invisible or change the direction of the text, so that a name can look like
// another one.
bool is_invisible(std::string_view character) {
  static const std::set<std::string_view> kAll = {
      "\u061C", "\u200B", "\u200C", "\u200D", "\u200E", "\u200F", "\u202A", "\u202B",
      "\u202C", "\u202D", "\u202E", "\u2066", "\u2067", "\u2068", "\u2069", "\uFEFF"};
  return kAll.contains(character);
}

// Backslashes prevent markup. kBreak prevents mentions (@user, #1) and automatic links.
std::string escaped_markdown(const std::string& text) {
  const std::string plain = without_controls(text);
  std::string safe;
  for (size_t at = 0; at < plain.size(); ++at) {
    const char c = plain[at];
    if (const size_t length = (c & 0xf0) == 0xe0   ? 3
                              : (c & 0xe0) == 0xc0 ? 2
                                                   : 0;
        length > 0 && is_invisible(std::string_view(plain).substr(at, length))) {
      safe += '?';
      at += length - 1;
      continue;
    }
    if (std::string_view("|\\`<*_[]~&").find(c) != std::string_view::npos) safe += '\\';
    safe += c;
    const bool address = c == ':' && plain.compare(at, 3, "://") == 0;
    if (c == '@' || c == '#' || address) safe += kBreak;
    if (c == '.' && at >= 3 && plain.compare(at - 3, 3, "www") == 0) safe += kBreak;
  }
  return safe;
}

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
