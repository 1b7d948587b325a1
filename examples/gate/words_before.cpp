// SPDX-License-Identifier: Apache-2.0
#include "words.h"

#include <algorithm>

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> words;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}
