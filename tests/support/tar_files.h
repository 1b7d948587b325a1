// SPDX-License-Identifier: Apache-2.0
// Tar archives (ustar) made in memory; with custom fields also invalid ones.
#pragma once

#include <cstdio>
#include <string>

namespace howmany::testing_support {

// One member: header and data, padded to blocks. `type` '0' is a regular file, '2' a symlink.
inline std::string tar_member(const std::string& name, const std::string& bytes, char type = '0') {
  std::string block(512, '\0');
  const auto put = [&](size_t at, const std::string& text) {
    block.replace(at, text.size(), text);
  };
  const auto octal = [](size_t value, int digits) {
    char text[32];
    std::snprintf(text, sizeof text, "%0*zo", digits, value);
    return std::string(text);
  };
  put(0, name.substr(0, 99));
  put(100, "0000644");
  put(108, "0000000");
  put(116, "0000000");
  put(124, octal(bytes.size(), 11));
  put(136, "00000000000");
  put(148, "        ");
  block[156] = type;
  put(257, std::string("ustar\0"
                       "00",
                       8));
  unsigned sum = 0;
  for (const char c : block) sum += static_cast<unsigned char>(c);
  put(148, octal(sum, 6) + std::string("\0 ", 2));
  std::string padded = bytes;
  padded.resize((bytes.size() + 511) / 512 * 512);
  return block + padded;
}

inline std::string tar_end() { return std::string(1024, '\0'); }

}  // namespace howmany::testing_support
