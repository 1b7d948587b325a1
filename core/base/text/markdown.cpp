// SPDX-License-Identifier: Apache-2.0
#include "core/base/text/markdown.h"

#include <set>
#include <string_view>

#include "core/base/text/table.h"

namespace howmany {
namespace {

constexpr const char* kBreak = "&#8203;";  // a zero-width space

// Characters that are invisible or change the direction of the text, so that a name can look like
// another one.
bool is_invisible(std::string_view character) {
  static const std::set<std::string_view> kAll = {
      "\u061C", "\u200B", "\u200C", "\u200D", "\u200E", "\u200F", "\u202A", "\u202B",
      "\u202C", "\u202D", "\u202E", "\u2066", "\u2067", "\u2068", "\u2069", "\uFEFF"};
  return kAll.contains(character);
}

}  // namespace

// Backslashes prevent markup. kBreak prevents mentions (@user, #1) and automatic links.
std::string escaped_markdown(const std::string& text) {
  const std::string plain = without_controls(text);
  std::string safe;
  for (size_t at = 0; at < plain.size(); ++at) {
    const char c = plain[at];
    if (const size_t length = (c & 0xf0) == 0xe0   ? 3
                              : (c & 0xe0) == 0xc0 ? 2
                                                   : 0;
        length > 0 && is_invisible(std::string_view(plain).substr(at, length))) {
      safe += '?';
      at += length - 1;
      continue;
    }
    if (std::string_view("|\\`<*_[]~&").find(c) != std::string_view::npos) safe += '\\';
    safe += c;
    const bool address = c == ':' && plain.compare(at, 3, "://") == 0;
    if (c == '@' || c == '#' || address) safe += kBreak;
    if (c == '.' && at >= 3 && plain.compare(at - 3, 3, "www") == 0) safe += kBreak;
  }
  return safe;
}

}  // namespace howmany
