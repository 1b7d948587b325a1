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

void end_process(std::string_view why) {
  // The thread that hangs may hold the stream.
  if (ftrylockfile(stdout) == 0) std::fflush(stdout);
  const std::string line = fmt::format("howmany: {}\n", why);
  std::fwrite(line.data(), 1, line.size(), stderr);
  std::fflush(stderr);  // buffered, if it was opened anew
  std::_Exit(kMeasurementFailed);
}

void give_up_on(std::string_view who, std::string_view why) {
  end_process(fmt::format("{} has not ended {:.1f} s after {}", who,
                          std::chrono::duration<double>(patience()).count(), why));
}

}  // namespace howmany
