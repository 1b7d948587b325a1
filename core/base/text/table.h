// SPDX-License-Identifier: Apache-2.0
// Text tables and styled text for people. Columns are as wide as their widest cell, with two spaces
// between them and no trailing blanks. A row may be bold or dimmed if colour is on. Titles, cells
// and sentences may contain untrusted text: sequences that command a terminal or a CI log are
// replaced.
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
  // Throws std::invalid_argument if the number of cells differs from the number of columns.
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

// Returns true if `fd` is a terminal that may show colour: NO_COLOR is unset and TERM is not
// "dumb".
bool color_wanted(int fd);
std::string styled(const std::string& text, Table::Style style, bool color);
// Replaces control characters and newlines by '?'.
std::string without_controls(const std::string& text);
// As without_controls(), and replaces the start of CI log commands ("::error::" at
// the beginning of a line, "##[error]" anywhere).
std::string printable(const std::string& text);
// Cuts text of more than `width` columns in the middle and puts an ellipsis there. Names from
// untrusted files can have any length.
std::string shortened(const std::string& text, size_t width);
constexpr size_t kNameWidth = 60;  // columns of a name in a table
// Returns printable(text), broken between words. Lines after the first start with `indent` blanks.
std::string wrapped(const std::string& text, size_t width, size_t indent);
constexpr size_t kTextWidth = 100;  // columns of wrapped text

}  // namespace howmany
