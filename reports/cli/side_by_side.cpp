// SPDX-License-Identifier: Apache-2.0
#include "reports/cli/side_by_side.h"

#include <array>
#include <optional>

#include "core/base/schema/metrics.h"
#include "core/base/text/format.h"
#include "core/base/text/table.h"
#include "reports/results/plain_json.h"

namespace howmany::reports {
namespace {

using PlainJson = nlohmann::json;

std::string text_or_dash(const PlainJson& value) {
  return value.is_null() ? "-" : json_text(value);
}

std::string shown_or_dash(const std::optional<double>& value, std::string (*format)(double)) {
  return value ? format(*value) : "-";
}

std::string two_digits(double value) { return format_ratio(value); }

// Returns the recommended row of the table of a `gpus` answer, or null.
const PlainJson& chosen_row(const PlainJson& one) {
  static const PlainJson kNull;
  const PlainJson& table = json_member(one, "table");
  if (!table.is_array()) return kNull;
  for (const PlainJson& row : table)
    if (json_member(row, "best") == true &&
        json_member(row, "devices") == json_member(one, "recommended"))
      return row;
  return kNull;
}

AnswerRow row_from(const std::string& run, const std::string& question, const PlainJson& one) {
  const PlainJson& chosen = chosen_row(one);
  const PlainJson& certain = json_member(one, "certain");
  const auto low = json_number(chosen, "efficiency_low");
  const auto high = json_number(chosen, "efficiency_high");
  return {run,
          question,
          text_or_dash(json_member(one, "model")),
          text_or_dash(json_member(one, "recommended")),
          !certain.is_boolean() ? "-"
          : certain.get<bool>() ? "yes"
                                : "no",
          shown_or_dash(json_number(chosen, metric::kSamplesPerS), format_count),
          shown_or_dash(json_number(chosen, "speedup"), two_digits),
          low && high ? two_digits(*low) + " to " + two_digits(*high) : "-",
          text_or_dash(json_member(one, "because"))};
}

std::array<std::string, 8> cells_of(const AnswerRow& row) {
  return {row.run,     row.question,      row.about,   row.answer,
          row.certain, row.samples_per_s, row.speedup, row.interval};
}

constexpr std::array<const char*, 8> kTitles = {
    "run",     "question",  "about",   "answer",
    "certain", "samples/s", "speedup", "95 % interval of efficiency"};

}  // namespace

std::vector<AnswerRow> answer_rows(const std::vector<NamedSummary>& runs) {
  constexpr size_t kMaxAnswerRows = 500;
  std::vector<AnswerRow> rows;
  const auto add = [&](const auto&... what) {
    if (rows.size() < kMaxAnswerRows) rows.push_back(row_from(what...));
  };
  for (const NamedSummary& run : runs) {
    const size_t before = rows.size();
    if (run.summary.answer.is_object())
      for (const auto& [question, answer] : run.summary.answer.items()) {
        if (question == "why") continue;  // recommends no number
        const PlainJson& cases = json_member(answer, "cases");
        if (!cases.is_array() || cases.empty()) add(run.name, question, answer);
        if (cases.is_array())
          for (const PlainJson& one : cases) add(run.name, question, one);
      }
    if (rows.size() == before) add(run.name, "-", PlainJson());
  }
  return rows;
}

std::string side_by_side_text(const std::vector<NamedSummary>& runs, bool color) {
  std::vector<Table::Column> columns;
  for (const char* title : kTitles)
    columns.push_back({title, columns.size() < 5 ? Table::Align::kLeft : Table::Align::kRight});
  Table table(columns);
  const std::vector<AnswerRow> rows = answer_rows(runs);
  for (const AnswerRow& row : rows) {
    std::vector<std::string> cells;
    for (const std::string& cell : cells_of(row)) cells.push_back(shortened(cell, kNameWidth));
    table.add(std::move(cells));
  }
  std::string text = table.text(color);
  for (const AnswerRow& row : rows)
    text += "\n" + styled(printable(row.run), Table::Style::kBold, color) + "\n  " +
            wrapped(row.because, kTextWidth - 2, 2) + "\n";
  return text;
}

}  // namespace howmany::reports
