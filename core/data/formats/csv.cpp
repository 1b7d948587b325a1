// SPDX-License-Identifier: Apache-2.0
// A table of numbers: a sample is a row, its label one column. The whole file is checked when it is
// opened. A sample is then parsed from its text again, so that only labels and offsets are in
// memory.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>

#include "core/base/error.h"
#include "core/base/text/table.h"
#include "core/data/formats.h"
#include "core/data/formats/csv_reader.h"
#include "core/data/formats/mapped_file.h"

namespace howmany {
namespace {

std::string_view trimmed(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

template <class T>
std::optional<T> parsed(std::string_view text) {
  text = trimmed(text);
  if (text.starts_with('+')) text.remove_prefix(1);
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return {};
  return value;
}

std::optional<float> number(std::string_view text) { return parsed<float>(text); }

struct Row {
  int64_t begin, line;
};

// The result of the first pass over a file.
struct CsvTable {
  size_t columns = 0, label = 0;
  std::vector<Row> rows;
  std::vector<std::string> labels;  // as text
};

class TableReader {
 public:
  explicit TableReader(std::string_view text) : text_(text), reader_(text) {}

  CsvTable read() {
    check_encoding();
    while (reader_.next()) {
      if (reader_.fields().size() == 1 && reader_.fields()[0].empty())
        throw Error(fmt::format("line {}: an empty line", reader_.line()));
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
        nul == text_.npos, "line {}: a NUL byte, so this is no text",
        1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(nul), '\n'));
  }

  // The first record is a header if it names the label's column, or has words instead of numbers.
  void first() {
    const auto& fields = reader_.fields();
    table_.columns = fields.size();
    for (const char separator : {';', '\t'})
      HM_ENSURE(table_.columns != 1 || fields[0].find(separator) == std::string_view::npos,
                "line 1: fields are separated by {}, and commas are expected",
                separator == ';' ? "semicolons" : "tabs");
    HM_ENSURE(table_.columns >= 2, "line 1: {} column, a number and a label are the least",
              table_.columns);
    HM_ENSURE(!fields[0].starts_with("\xef\xbb\xbf"),
              "line 1: begins with a byte order mark: save it as plain UTF-8");
    table_.label = table_.columns - 1;
    const auto named = std::ranges::find(fields, "label", trimmed);
    if (named != fields.end())
      table_.label = static_cast<size_t>(named - fields.begin());
    else if (std::any_of(fields.begin(), fields.end() - 1, number))
      row();
  }

  void row() {
    const auto& fields = reader_.fields();
    HM_ENSURE(fields.size() == table_.columns, "line {}: {} fields, the first line has {}",
              reader_.line(), fields.size(), table_.columns);
    for (size_t i = 0; i < fields.size(); ++i)
      HM_ENSURE(i == table_.label || number(fields[i]), "line {}: '{}' in column {} is no number",
                reader_.line(), printable(std::string(fields[i].substr(0, 40))), i + 1);
    const std::string_view label = trimmed(fields[table_.label]);
    HM_ENSURE(!label.empty(), "line {}: no label", reader_.line());
    table_.rows.push_back({reader_.begin(), reader_.line()});
    table_.labels.emplace_back(label);
  }

  std::string_view text_;
  CsvReader reader_;
  CsvTable table_;
};

// Labels as numbers. They are classes if all are whole numbers from 0. If some are words, they are
// classes in sorted order. Else they are values.
struct Labels {
  std::vector<double> values;
  int64_t classes = 0;
};

Labels numbered(const std::vector<std::string>& labels) {
  std::map<std::string, double> names;
  for (const std::string& label : labels) names[label];
  Labels result;
  for (auto& [name, value] : names) value = static_cast<double>(result.classes++);
  for (const std::string& label : labels) result.values.push_back(names[label]);
  return result;
}

Labels labels_from(const std::vector<std::string>& texts) {
  constexpr int64_t kMaxClasses = 1 << 24;
  Labels labels;
  bool whole = true;
  for (const std::string& text : texts) {
    const auto value = parsed<double>(text);
    if (!value || !std::isfinite(*value)) return numbered(texts);
    const auto id = parsed<int64_t>(text);
    whole = whole && id && *id >= 0 && *id < kMaxClasses;
    if (whole) labels.classes = std::max(labels.classes, *id + 1);
    labels.values.push_back(*value);
  }
  if (!whole) labels.classes = 0;
  return labels;
}

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
    return fmt::format("{} rows of {} numbers in {}", size(), table_.columns - 1, file_->path());
  }
  std::string name_of(int64_t index) const override {
    return fmt::format("{} line {}", file_->path(),
                       table_.rows.at(static_cast<size_t>(index)).line);
  }

 private:
  void write_numbers(const std::vector<std::string_view>& fields, int64_t index, float* x) const {
    for (size_t i = 0; i < fields.size(); ++i) {
      if (i == table_.label) continue;
      const auto value = number(fields[i]);
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
  if (std::filesystem::path(path).extension() != ".csv") return {};
  auto file = std::make_unique<MappedFile>(path);
  CsvTable table = table_of(*file);
  auto dataset = std::make_unique<CsvDataset>(std::move(file), std::move(table));
  OpenedData opened;
  opened.files = {path};
  opened.classes = dataset->classes();
  opened.listed = dataset->size();
  opened.dataset = std::move(dataset);
  return opened;
}

}  // namespace howmany
