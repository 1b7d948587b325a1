#include "parallel/patience.h"

#include <fmt/format.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace howmany {
namespace {

constexpr int kMeasurementFailed = 3;
std::atomic<std::chrono::milliseconds> time_given{std::chrono::milliseconds(30'000)};

}  // namespace

std::chrono::milliseconds patience() { return time_given; }
void set_patience(std::chrono::milliseconds time) { time_given = time; }

void give_up_on(std::string_view who, std::string_view why) {
  // The thread that hangs may hold the stream.
  if (ftrylockfile(stdout) == 0) std::fflush(stdout);
  const std::string line = fmt::format("howmany: {} has not ended {:.1f} s after {}\n", who,
                                       std::chrono::duration<double>(patience()).count(), why);
  std::fwrite(line.data(), 1, line.size(), stderr);
  std::_Exit(kMeasurementFailed);
}

}  // namespace howmany
