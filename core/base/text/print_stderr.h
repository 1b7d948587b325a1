// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <utility>

namespace howmany {

// Writes a message for people to stderr. It is lost if stderr cannot be written, for instance on a
// full disk: fmt::print() would throw, and end the measurement.
template <typename... Args>
void print_stderr(fmt::format_string<Args...> format, Args&&... args) {
  const std::string text = fmt::format(format, std::forward<Args>(args)...);
  std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace howmany
