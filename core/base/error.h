// SPDX-License-Identifier: Apache-2.0
// Exceptions of this project:
// * std::invalid_argument: the caller made a mistake. It is thrown before any side effect.
// * Error: a peer, file, device or clock failed.
// * InputError: a file or an option of a command is not usable.
// HM_ASSERT finds bugs of this project. It is active in Debug and sanitizer builds only.
// Messages name the place, the problem and the numbers: "[matmul] inner sizes differ: a [2,4], b
// [3,5]".
#pragma once

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <cassert>
#include <stdexcept>
#include <string>

namespace howmany {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The content of a file is wrong, or it cannot be read or written. A command prints one line and
// exits with code 2.
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Returns the text of an error. If memory or threads ran out, it says so, with the remedy.
std::string reason_of(const std::exception& error);

}  // namespace howmany

#define HM_REQUIRE(condition, ...)                           \
  do {                                                       \
    if (!(condition)) [[unlikely]]                           \
      throw std::invalid_argument(fmt::format(__VA_ARGS__)); \
  } while (false)

#define HM_ENSURE(condition, ...)                       \
  do {                                                  \
    if (!(condition)) [[unlikely]]                      \
      throw ::howmany::Error(fmt::format(__VA_ARGS__)); \
  } while (false)

#define HM_ASSERT(condition) assert(condition)
