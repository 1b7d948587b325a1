// SPDX-License-Identifier: Apache-2.0
// A table of numbers: a sample is a row, its label one column. The whole file is checked when it is
// opened. A sample is then parsed from its text again, so that only labels and offsets are in
// memory.
#include <algorithm>
#include <array>
#include <memory>

#include "core/base/error.h"
#include "core/base/text/table.h"
#include "core/data/formats.h"
#include "core/data/formats/csv_reader.h"
#include "core/data/formats/mapped_file.h"
#include "core/data/formats/text_values.h"

namespace howmany {
namespace {

std::optional<float> as_float(std::string_view text) { return parsed<float>(text); }

struct Row {
  int64_t begin, line;
};

// The result of the first pass over a file.
struct CsvTable {
  size_t columns = 0, label = 0;
  std::vector<Row> rows;
  std::vector<std::string> labels;  // as text
  std::vector<std::string> notes;
};

constexpr std::string_view kMark = "\xef\xbb\xbf";  // Excel begins UTF-8 by a byte order mark

class TableReader {
 public:
  explicit TableReader(std::string_view text)
      : text_(text),
        mark_(text.starts_with(kMark) ? kMark.size() : 0),
        reader_(text.substr(mark_)) {}

  CsvTable read() {
    check_encoding();
    while (reader_.next()) {
      const auto& fields = reader_.fields();
      if (fields.size() == 1 && trimmed(fields[0]).empty()) continue;  // as pandas
      if (table_.columns == 0)
        first();
      else
        row();
    }
    HM_ENSURE(!table_.rows.empty(), "no rows of numbers");
    return std::move(table_);
  }

 private:
  void check_encoding() const {
    HM_ENSURE(!text_.starts_with("\xff\xfe") && !text_.starts_with("\xfe\xff"),
              "UTF-16: save it as UTF-8");
    const size_t nul = text_.find('\0');
    HM_ENSURE(
        nul == text_.npos, "line {}: a NUL byte, so this is no text: save it as UTF-8",
        1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(nul), '\n'));
  }

  // The first record is a header if it names the label's column, numbers the columns from 0, or
  // has words instead of numbers.
  void first() {
    const auto& fields = reader_.fields();
    table_.columns = fields.size();
    for (const auto& [separator, name] : kSeparators)
      HM_ENSURE(table_.columns != 1 || fields[0].find(separator) == std::string_view::npos,
                "line {}: fields are separated by {}, and commas are expected: save it by "
                "pandas.read_csv(FILE, sep=None, engine='python').to_csv(FILE, index=False)",
                reader_.line(), name);
    HM_ENSURE(table_.columns >= 2,
              "line {}: {} column, a number and a label with a comma between them are the least",
              reader_.line(), table_.columns);
    table_.label = table_.columns - 1;
    const auto named =
        std::ranges::find(fields, "label", [](auto field) { return lower(trimmed(field)); });
    if (named != fields.end())
      table_.label = static_cast<size_t>(named - fields.begin());
    else if (numbers_columns())
      table_.notes.push_back(
          fmt::format("line {} (0 to {}) is taken as the names of the columns, not as a row",
                      reader_.line(), trimmed(fields.back())));
    else if (std::any_of(fields.begin(), fields.end() - 1, as_float))
      return row();
    if (trimmed(fields[0]).empty())
      table_.notes.emplace_back("column 1 has no name, as an index of pandas, and is read too");
    names_.assign(fields.begin(), fields.end());
  }

  // True for "0,1,2", as pandas names columns, and for ",0,1", which has an index before them. Two
  // columns are more likely a row.
  bool numbers_columns() const {
    const auto& fields = reader_.fields();
    const bool index = trimmed(fields[0]).empty();
    for (size_t i = index; i < fields.size(); ++i)
      if (parsed<size_t>(fields[i]) != i - index) return false;
    return fields.size() >= 3;
  }

  void row() {
    const auto& fields = reader_.fields();
    HM_ENSURE(fields.size() == table_.columns,
              "line {}: {} fields, the first line has {}: quote fields that have commas",
              reader_.line(), fields.size(), table_.columns);
    for (size_t i = 0; i < fields.size(); ++i)
      if (i != table_.label && !as_float(fields[i])) refuse(i);
    const std::string_view label = trimmed(fields[table_.label]);
    HM_ENSURE(!label.empty(), "line {}: no label in column {}: fill it in, or remove the line",
              reader_.line(), column(table_.label));
    table_.rows.push_back({reader_.begin() + static_cast<int64_t>(mark_), reader_.line()});
    table_.labels.emplace_back(label);
  }

  // "2", "2 (age)"
  std::string column(size_t i) const {
    if (names_.empty() || trimmed(names_[i]).empty()) return std::to_string(i + 1);
    return fmt::format("{} ({})", i + 1, printable(names_[i].substr(0, kShown)));
  }

  [[noreturn]] void refuse(size_t i) const {
    const std::string_view field = reader_.fields()[i];
    const std::string word = lower(trimmed(field));
    const bool missing = std::ranges::count(kMissing, word) > 0;
    throw Error(fmt::format("line {}: '{}' in column {} is no number: {}", reader_.line(),
                            printable(std::string(field.substr(0, kShown))), column(i),
                            missing ? "fill in missing values, or remove the line"
                            : field.find(';') != field.npos
                                ? "separate the fields by commas, with points in numbers"
                                : "remove the column, or replace its words by numbers"));
  }

  static constexpr size_t kShown = 40;
  static constexpr std::array<std::pair<char, std::string_view>, 3> kSeparators = {
      {{';', "semicolons"}, {'\t', "tabs"}, {'|', "bars"}}};
  static constexpr std::array<std::string_view, 8> kMissing = {"",     "na",   "n/a", "#n/a",
                                                               "null", "none", "?",   "-"};

  std::string_view text_;
  size_t mark_;  // bytes of the mark
  CsvReader reader_;
  CsvTable table_;
  std::vector<std::string> names_;  // of the columns; empty without a header
};

class CsvDataset final : public Dataset {
 public:
  CsvDataset(std::unique_ptr<MappedFile> file, CsvTable table)
      : file_(std::move(file)), table_(std::move(table)), labels_(labels_from(table_.labels)) {
    table_.labels = {};
  }

  int64_t classes() const { return labels_.classes; }
  int64_t size() const override { return static_cast<int64_t>(table_.rows.size()); }
  SampleSpec spec() const override {
    const auto inputs = static_cast<int64_t>(table_.columns) - 1;
    if (labels_.classes > 0) return {.x = {inputs}};
    return {.x = {inputs}, .y = {1}, .y_dtype = Dtype::f32};
  }

  void get(int64_t index, uint64_t, void* x, void* y) const override {
    HM_REQUIRE(index >= 0 && index < size(), "[csv] sample {} of {}", index, size());
    const auto row = static_cast<size_t>(index);
    const int64_t begin = table_.rows[row].begin;
    const int64_t end = index + 1 < size() ? table_.rows[row + 1].begin : file_->size();
    const auto bytes = file_->bytes(begin, end - begin);
    CsvReader reader(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    HM_ENSURE(reader.next() && reader.fields().size() == table_.columns,
              "{}: changed since it was opened", name_of(index));
    write_numbers(reader.fields(), index, static_cast<float*>(x));
    if (labels_.classes > 0)
      *static_cast<int64_t*>(y) = static_cast<int64_t>(labels_.values[row]);
    else
      *static_cast<float*>(y) = static_cast<float>(labels_.values[row]);
  }

  std::string describe() const override {
    return fmt::format("{} rows of {} numbers in {}, labels in column {}", size(),
                       table_.columns - 1, file_->path(), table_.label + 1);
  }
  std::string name_of(int64_t index) const override {
    return fmt::format("{} line {}", file_->path(),
                       table_.rows.at(static_cast<size_t>(index)).line);
  }

 private:
  void write_numbers(const std::vector<std::string_view>& fields, int64_t index, float* x) const {
    for (size_t i = 0; i < fields.size(); ++i) {
      if (i == table_.label) continue;
      const auto value = as_float(fields[i]);
      HM_ENSURE(value, "{}: changed since it was opened", name_of(index));
      *x++ = *value;
    }
  }

  std::unique_ptr<MappedFile> file_;
  CsvTable table_;
  Labels labels_;
};

CsvTable table_of(const MappedFile& file) {
  const auto bytes = file.bytes();
  try {
    return TableReader({reinterpret_cast<const char*>(bytes.data()), bytes.size()}).read();
  } catch (const Error& e) {
    throw Error(fmt::format("{}: {}", file.path(), e.what()));
  }
}

}  // namespace

std::optional<OpenedData> formats::csv(const std::string& path, const DataOptions&) {
  if (extension_of(path) != ".csv") return {};
  auto file = std::make_unique<MappedFile>(path);
  CsvTable table = table_of(*file);
  OpenedData opened;
  opened.notes = std::move(table.notes);
  auto dataset = std::make_unique<CsvDataset>(std::move(file), std::move(table));
  opened.files = {path};
  opened.classes = dataset->classes();
  opened.listed = dataset->size();
  opened.dataset = std::move(dataset);
  return opened;
}

}  // namespace howmany
