// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "core/base/text/table.h"
#include "reports/regression/text.h"
#include "reports/regression/writer.h"

namespace howmany::reports {
namespace {

constexpr int64_t kMaxVerdictRows = 60;  // per verdict; json lists all

void add(Table& table, const Row& row) {
  const bool changed = row.verdict == Verdict::kSlower || row.verdict == Verdict::kFaster;
  table.add({name_of(row.verdict), short_title(row), value_text(row, row.base),
             value_text(row, row.candidate), change_text(row), interval_text(row.interval),
             p_text(row), samples_text(row)},
            changed ? Table::Style::kBold : Table::Style::kPlain);
}

std::string paragraph(const std::string& text) { return wrapped(text, kTextWidth, 2) + "\n"; }

// Lists the worst rows of each verdict and counts the others.
std::string rows_text(const Comparison& c) {
  Table table({{"verdict", Table::Align::kLeft},
               {"benchmark", Table::Align::kLeft},
               {"base"},
               {"candidate"},
               {"change"},
               {"95 %"},
               {"p"},
               {c.paired ? "pairs" : "samples"}});
  std::string more;
  int64_t shown = 0;
  for (size_t i = 0; i < c.rows.size(); ++i) {
    const Row& row = c.rows[i];
    if (i == 0 || c.rows[i - 1].verdict != row.verdict) shown = 0;
    if (++shown <= kMaxVerdictRows) add(table, row);
    if (shown == kMaxVerdictRows + 1) {
      more += paragraph(fmt::format("... and {} more {}: --format json lists them all",
                                    c.count(row.verdict) - kMaxVerdictRows, name_of(row.verdict)));
    }
  }
  return table.text() + more;
}

// Gives each reason once, with the first measurement that has it.
std::string reasons(const Comparison& c) {
  constexpr size_t kMaxReasons = 12;
  std::vector<std::pair<const Row*, int64_t>> first;  // and the number of rows
  std::unordered_map<std::string_view, size_t> places;
  for (const Row& row : c.rows) {
    const bool on_one_side = row.verdict == Verdict::kMissing || row.verdict == Verdict::kNew;
    if (row.why.empty() || on_one_side) continue;
    const auto [place, is_new] = places.try_emplace(row.why, first.size());
    if (is_new) first.emplace_back(&row, 0);
    ++first[place->second].second;
  }
  std::string text;
  for (size_t i = 0; i < std::min(first.size(), kMaxReasons); ++i) {
    const auto& [row, rows] = first[i];
    const std::string others = rows > 1 ? fmt::format(" and {} more", rows - 1) : "";
    text += paragraph(fmt::format("{}{}: {}", short_title(*row), others, row->why));
  }
  return text;
}

}  // namespace

std::string as_text(const Comparison& c) {
  std::string text = paragraph(headline(c)) + "\n";
  if (!c.rows.empty()) text += rows_text(c) + "\n";
  if (c.suite_change) {
    text += paragraph(fmt::format("All together: {} {}", change_text(*c.suite_change),
                                  interval_text(c.suite_interval)));
  }
  text += reasons(c);
  for (const auto& [was, is] : c.renamed) {
    text += paragraph(fmt::format("{} may have been renamed to {}", shortened(was, kNameWidth),
                                  shortened(is, kNameWidth)));
  }
  for (const std::string& note : c.notes) text += paragraph("Note: " + note);
  for (const std::string& field : c.likeness.decisive) text += paragraph("Not alike: " + field);
  for (const std::string& field : c.likeness.others) text += paragraph("Differs: " + field);
  return text + paragraph("Method: " + method(c));
}

}  // namespace howmany::reports
