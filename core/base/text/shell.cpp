// SPDX-License-Identifier: Apache-2.0
#include "core/base/text/shell.h"

namespace howmany {

std::string shell_quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string shell_word(const std::string& text) {
  const bool plain = !text.empty() && text.find_first_not_of(
                                          "abcdefghijklmnopqrstuvwxyz"
                                          "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                          "0123456789_-:=,./") == std::string::npos;
  return plain ? text : shell_quoted(text);
}

std::string shell_words(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& one : words) line += (line.empty() ? "" : " ") + shell_word(one);
  return line;
}

}  // namespace howmany
