// SPDX-License-Identifier: Apache-2.0
#include "core/base/text/utf8.h"

#include <fmt/format.h>

namespace howmany {
namespace {

// True if a UTF-8 character of `length` bytes starts at `at`.
bool continues(const std::string& text, size_t at, size_t length) {
  if (at + length > text.size()) return false;
  for (size_t i = 1; i < length; ++i)
    if ((static_cast<unsigned char>(text[at + i]) & 0xc0) != 0x80) return false;
  return true;
}

}  // namespace

size_t utf8_length(const std::string& text, size_t at) {
  const auto c = static_cast<unsigned char>(text[at]);
  const size_t length = c < 0x80   ? 1
                        : c < 0xc2 ? 0
                        : c < 0xe0 ? 2
                        : c < 0xf0 ? 3
                        : c < 0xf5 ? 4
                                   : 0;
  if (length == 0 || !continues(text, at, length)) return 0;
  // Overlong forms, surrogates and numbers above U+10FFFF.
  const auto next = length > 1 ? static_cast<unsigned char>(text[at + 1]) : 0x80U;
  const bool wrong = (c == 0xe0 && next < 0xa0) || (c == 0xed && next > 0x9f) ||
                     (c == 0xf0 && next < 0x90) || (c == 0xf4 && next > 0x8f);
  return wrong ? 0 : length;
}

std::string with_visible_controls(const std::string& text) {
  std::string visible;
  for (size_t at = 0; at < text.size();) {
    const size_t length = utf8_length(text, at);
    const auto c = static_cast<unsigned char>(text[at]);
    const bool control = c < 0x20 || c == 0x7f;
    visible += length == 0 || control ? fmt::format("\\x{:02x}", c) : text.substr(at, length);
    at += length == 0 ? 1 : length;
  }
  return visible;
}

}  // namespace howmany
