// SPDX-License-Identifier: Apache-2.0
#include "core/data/formats/csv_reader.h"

#include "core/base/error.h"

namespace howmany {

bool CsvReader::next() {
  fields_.clear();
  unescaped_.clear();
  begin_ = at_;
  first_line_ = line_;
  if (at_ >= text_.size()) return false;
  while (field()) {
  }
  return true;
}

// Returns false if the field was the last of its record.
bool CsvReader::field() {
  const bool quote = at_ < text_.size() && text_[at_] == '"';
  fields_.push_back(quote ? quoted() : plain());
  if (at_ >= text_.size()) return false;
  if (text_[at_] == ',') {
    ++at_;
    return true;
  }
  if (text_[at_] == '\r') ++at_;
  if (at_ >= text_.size() || text_[at_] != '\n')
    fail(quote ? "text after a closing quote"
               : "a carriage return without a line feed, which ends lines here");
  ++at_;
  ++line_;
  return false;
}

std::string_view CsvReader::quoted() {
  const size_t begin = ++at_;
  bool doubled = false;
  for (;; ++at_) {
    if (at_ >= text_.size()) fail("a quote that is never closed");
    if (text_[at_] == '\n') ++line_;
    if (text_[at_] != '"') continue;
    if (at_ + 1 >= text_.size() || text_[at_ + 1] != '"') break;
    doubled = true;
    ++at_;
  }
  const std::string_view raw = text_.substr(begin, at_++ - begin);
  if (!doubled) return raw;
  std::string& text = unescaped_.emplace_back();
  for (size_t i = 0; i < raw.size(); ++i) {
    text += raw[i];
    if (raw[i] == '"') ++i;
  }
  return text;
}

std::string_view CsvReader::plain() {
  const size_t begin = at_;
  at_ = std::min(text_.find_first_of(",\r\n\"", at_), text_.size());
  if (at_ < text_.size() && text_[at_] == '"') fail("a quote inside an unquoted field");
  return text_.substr(begin, at_ - begin);
}

void CsvReader::fail(std::string_view why) const {
  throw Error(fmt::format("line {}: {}", first_line_, why));
}

}  // namespace howmany
