// Three kinds of failure leave this project as exceptions:
// * std::invalid_argument: a caller's mistake, thrown before any side effect;
// * Error: a world that failed (peer, file, device, clock);
// * InputError: a file or an option of a command that is not usable.
// Our own bugs are HM_ASSERT, active in Debug and sanitizer builds only. Messages say where, what,
// and the numbers: "[matmul] inner sizes differ: a [2,4], b [3,5]".
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

// A file that is not what it should be, or cannot be read or written: one line, exit code 2.
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

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
