// SPDX-License-Identifier: Apache-2.0
// Reads the records of a CSV text by RFC 4180: fields between commas, lines ended by LF or CRLF. A
// field in double quotes may contain commas, line ends and doubled quotes. Throws Error with the
// line if the RFC does not allow the text. One thread.
//
//   CsvReader reader(text);
//   while (reader.next()) use(reader.fields());
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace howmany {

class CsvReader {
 public:
  // `text` must outlive the reader. `line` is the number of its first line.
  explicit CsvReader(std::string_view text, int64_t line = 1) : text_(text), line_(line) {}

  // Reads the next record. Returns false at the end of the text. Throws Error: "line 3: ...".
  bool next();
  // The fields of the current record, valid until the next call of next().
  const std::vector<std::string_view>& fields() const { return fields_; }
  int64_t begin() const { return static_cast<int64_t>(begin_); }  // its offset in the text
  int64_t line() const { return first_line_; }                    // its first line

 private:
  bool field();
  std::string_view quoted();
  std::string_view plain();
  [[noreturn]] void fail(std::string_view why) const;

  std::string_view text_;
  size_t at_ = 0, begin_ = 0;
  int64_t line_, first_line_ = 0;
  std::vector<std::string_view> fields_;
  std::deque<std::string> unescaped_;  // fields that contained doubled quotes
};

}  // namespace howmany
