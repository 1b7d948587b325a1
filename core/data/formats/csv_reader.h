// Records of a CSV text as RFC 4180 has them: fields between commas, lines ended by LF or CRLF, a
// field in double quotes may hold commas, line ends and doubled quotes. Strict: what the RFC does
// not allow is an Error with the line, never a guess. One thread.
//
//   CsvReader reader(text);
//   while (reader.next()) use(reader.fields());
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace howmany {

class CsvReader {
 public:
  // `text` must stay; `line` is the number of its first line.
  explicit CsvReader(std::string_view text, int64_t line = 1) : text_(text), line_(line) {}

  // Reads the next record; false at the end of the text. Throws Error: "line 3: ...".
  bool next();
  // Of the record that was read, good until the next one.
  const std::vector<std::string_view>& fields() const { return fields_; }
  int64_t begin() const { return static_cast<int64_t>(begin_); }  // in the text, of that record
  int64_t line() const { return first_line_; }                    // where it began

 private:
  bool field();
  std::string_view quoted();
  std::string_view plain();
  [[noreturn]] void fail(std::string_view why) const;

  std::string_view text_;
  size_t at_ = 0, begin_ = 0;
  int64_t line_, first_line_ = 0;
  std::vector<std::string_view> fields_;
  std::deque<std::string> unescaped_;  // fields that held doubled quotes
};

}  // namespace howmany
