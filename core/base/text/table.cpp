// SPDX-License-Identifier: Apache-2.0
#include "core/base/text/table.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

namespace howmany {
namespace {

// Counts columns on the screen: the bytes that do not continue a UTF-8 character.
size_t width_of(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](unsigned char c) { return (c & 0xc0) != 0x80; }));
}

bool is_control(unsigned char c) { return c < 0x20 || c == 0x7f; }

// Matches U+0080 to U+009F, which some terminals treat like ESC.
bool is_wide_control(const std::string& text, size_t at) {
  return text[at] == '\xC2' && at + 1 < text.size() &&
         (static_cast<unsigned char>(text[at + 1]) & 0xe0) == 0x80;
}

// Returns the byte at which column `column` begins.
size_t byte_of_column(const std::string& text, size_t column) {
  size_t at = 0;
  for (size_t i = 0; i < column && at < text.size(); ++i) {
    do ++at;
    while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80);
  }
  return at;
}

// The GitHub runner ignores leading blanks when it looks for a command.
std::string without_command(std::string line) {
  const size_t first = line.find_first_not_of(' ');
  if (first != line.npos && line.compare(first, 2, "::") == 0) line[first] = '?';
  return line;
}

}  // namespace

std::string without_controls(const std::string& text) {
  std::string safe;
  for (size_t at = 0; at < text.size(); ++at) {
    const bool wide = is_wide_control(text, at);
    safe += wide || is_control(static_cast<unsigned char>(text[at])) ? '?' : text[at];
    at += wide ? 1 : 0;
  }
  return safe;
}

std::string shortened(const std::string& text, size_t width) {
  const size_t columns = width_of(text);
  if (columns <= width) return text;
  const size_t left = (width - 3) / 2, right = width - 3 - left;
  return text.substr(0, byte_of_column(text, left)) + "..." +
         text.substr(byte_of_column(text, columns - right));
}

std::string printable(const std::string& text) {
  std::string safe = without_command(without_controls(text));
  for (size_t at = safe.find("##["); at != safe.npos; at = safe.find("##[", at)) safe[at] = '?';
  return safe;
}

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {
  for (Column& column : columns_) column.title = printable(column.title);
}

void Table::add(std::vector<std::string> cells, Style style) {
  if (cells.size() != columns_.size()) {
    throw std::invalid_argument("[table] as many cells as columns are needed");
  }
  for (std::string& cell : cells) cell = printable(cell);
  rows_.push_back({std::move(cells), style});
}

std::string Table::line(const std::vector<std::string>& cells,
                        const std::vector<size_t>& widths) const {
  std::string text;
  for (size_t i = 0; i < cells.size(); ++i) {
    const std::string pad(widths[i] - width_of(cells[i]), ' ');
    if (i > 0) text += "  ";
    text += columns_[i].align == Align::kLeft ? cells[i] + pad : pad + cells[i];
  }
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

std::string Table::text(bool color) const {
  std::vector<std::string> titles;
  std::vector<size_t> widths;
  for (const Column& column : columns_) {
    titles.push_back(column.title);
    widths.push_back(width_of(column.title));
  }
  for (const Row& row : rows_) {
    for (size_t i = 0; i < widths.size(); ++i) {
      widths[i] = std::max(widths[i], width_of(row.cells[i]));
    }
  }
  std::string all = styled(line(titles, widths), Style::kDim, color) + "\n";
  for (const Row& row : rows_) all += styled(line(row.cells, widths), row.style, color) + "\n";
  return all;
}

bool color_wanted(int fd) {
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  if (no_color != nullptr && *no_color != '\0') return false;
  return ::isatty(fd) == 1 && term != nullptr && std::strcmp(term, "dumb") != 0;
}

std::string styled(const std::string& text, Table::Style style, bool color) {
  if (!color || style == Table::Style::kPlain) return text;
  return (style == Table::Style::kBold ? "\033[1m" : "\033[2m") + text + "\033[0m";
}

std::string wrapped(const std::string& from, size_t width, size_t indent) {
  const std::string text = printable(from);
  std::string all, line;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    at = end + 1;
    if (!line.empty() && width_of(line) + 1 + width_of(word) > width) {
      all += without_command(line) + "\n";
      line = std::string(indent, ' ') + word;
    } else {
      line += line.empty() ? word : " " + word;
    }
  }
  return all + without_command(line);
}

}  // namespace howmany
