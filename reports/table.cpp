#include "reports/table.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

namespace howmany {
namespace {

// Columns on the screen: bytes that do not continue a UTF-8 character.
size_t width_of(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](unsigned char c) { return (c & 0xc0) != 0x80; }));
}

}  // namespace

void Table::add(std::vector<std::string> cells, Style style) {
  if (cells.size() != columns_.size()) {
    throw std::invalid_argument("[table] as many cells as columns are needed");
  }
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

std::string wrapped(const std::string& text, size_t width, size_t indent) {
  std::string all, line;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    at = end + 1;
    if (!line.empty() && width_of(line) + 1 + width_of(word) > width) {
      all += line + "\n";
      line = std::string(indent, ' ') + word;
    } else {
      line += line.empty() ? word : " " + word;
    }
  }
  return all + line;
}

}  // namespace howmany
