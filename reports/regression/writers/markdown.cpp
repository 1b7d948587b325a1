#include <fmt/format.h>

#include "reports/regression/writer.h"
#include "reports/regression/writers/common.h"

namespace howmany::reports {
namespace {

constexpr int64_t kMostRows = 50, kMostFolded = 150;
constexpr size_t kLongest = 160;  // per cell; a comment holds 64 KiB

std::string cell(std::string text) {
  if (text.size() > kLongest) {
    size_t cut = kLongest;
    while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xc0) == 0x80) --cut;
    text = text.substr(0, cut) + "...";
  }
  std::string safe;
  for (const char c : text) {
    if (c == '|' || c == '\\' || c == '`' || c == '<' || c == '*' || c == '_') safe += '\\';
    safe += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return safe;
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

std::string table(const std::vector<const Row*>& rows, int64_t most) {
  std::string text =
      "| verdict | benchmark | base | candidate | change | 95 % | n |\n"
      "|---|---|--:|--:|--:|--:|--:|\n";
  const auto all = static_cast<int64_t>(rows.size());
  for (int64_t i = 0; i < std::min(most, all); ++i) text += line(*rows[static_cast<size_t>(i)]);
  if (all > most) text += fmt::format("\n... and {} more.\n", all - most);
  return text;
}

}  // namespace

std::string as_markdown(const Comparison& c) {
  std::vector<const Row*> open, folded;
  for (const Row& row : c.rows) (row.verdict == Verdict::kSame ? folded : open).push_back(&row);
  std::string text = "### " + cell(headline(c)) + "\n\n";
  if (!open.empty()) text += table(open, kMostRows) + "\n";
  for (const auto& [was, is] : c.renamed) {
    text += fmt::format("- {} may have been renamed to {}\n", cell(was), cell(is));
  }
  if (!folded.empty()) {
    text += fmt::format("\n<details><summary>{} unchanged</summary>\n\n{}\n</details>\n",
                        folded.size(), table(folded, kMostFolded));
  }
  for (const std::string& note : c.notes) text += "\n> " + cell(note) + "\n";
  for (const std::string& field : c.likeness.decisive) {
    text += "\n> not alike: " + cell(field) + "\n";
  }
  return text + "\n<sub>" + method(c) + "</sub>\n";
}

}  // namespace howmany::reports
