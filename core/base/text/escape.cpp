// SPDX-License-Identifier: Apache-2.0
#include "core/base/text/escape.h"

#include <algorithm>

#include "core/base/text/table.h"
#include "core/base/text/utf8.h"

namespace howmany {
namespace {

std::string entity(const std::string& character) {
  switch (character[0]) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    case '\'':
      return "&#39;";
    default:
      return character;
  }
}

}  // namespace

std::string escaped(const std::string& from, size_t most) {
  const std::string text = printable(from.substr(0, most + 4));  // 4: the longest UTF-8 character
  std::string safe;
  for (size_t at = 0; at < text.size();) {
    const size_t length = utf8_length(text, at);
    if (at + std::max<size_t>(1, length) > most) return safe + "...";
    safe += length == 0 ? "?" : entity(text.substr(at, length));
    at += std::max<size_t>(1, length);
  }
  return safe;
}

}  // namespace howmany
