// A text table for people: columns as wide as their widest cell, two spaces between, no trailing
// blanks; a row may be marked or dimmed when colour is on. Titles, cells and wrapped sentences may
// hold text from files of others: what commands a terminal or a CI log is made harmless in them.
#pragma once

#include <string>
#include <vector>

namespace howmany {

class Table {
 public:
  enum class Align { kLeft, kRight };
  enum class Style { kPlain, kBold, kDim };
  struct Column {
    std::string title;
    Align align = Align::kRight;
  };

  explicit Table(std::vector<Column> columns);
  // Throws std::invalid_argument when there are not as many cells as columns.
  void add(std::vector<std::string> cells, Style style = Style::kPlain);
  std::string text(bool color = false) const;

 private:
  struct Row {
    std::vector<std::string> cells;
    Style style;
  };
  std::string line(const std::vector<std::string>& cells, const std::vector<size_t>& widths) const;

  std::vector<Column> columns_;
  std::vector<Row> rows_;
};

// True for a terminal that may show colour: NO_COLOR unset, TERM not "dumb".
bool color_wanted(int fd);
std::string styled(const std::string& text, Table::Style style, bool color);
// With '?' for each control character and newline, and for what a CI log takes for the beginning of
// a command ("::error::" at a line's begin, "##[error]" anywhere).
std::string printable(const std::string& text);
// Made printable and broken between words; lines after the first start with `indent` blanks.
std::string wrapped(const std::string& text, size_t width, size_t indent);
constexpr size_t kTextWidth = 100;  // columns of a wrapped sentence

}  // namespace howmany
