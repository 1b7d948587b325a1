// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/hang_timeout.h"

#include <fmt/format.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace howmany {
namespace {

constexpr int kMeasurementFailed = 3;
std::atomic<std::chrono::milliseconds> timeout_set{std::chrono::milliseconds(30'000)};

}  // namespace

std::chrono::milliseconds hang_timeout() { return timeout_set; }
void set_hang_timeout(std::chrono::milliseconds timeout) { timeout_set = timeout; }

void end_process(std::string_view why) {
  // The hung thread may hold the lock of stdout.
  if (ftrylockfile(stdout) == 0) std::fflush(stdout);
  const std::string line = fmt::format("howmany: {}\n", why);
  std::fwrite(line.data(), 1, line.size(), stderr);
  std::fflush(stderr);  // stderr is buffered if it was reopened
  std::_Exit(kMeasurementFailed);
}

void end_hung_process(std::string_view name, std::string_view event) {
  end_process(fmt::format("{} has not ended {:.1f} s after {}", name,
                          std::chrono::duration<double>(hang_timeout()).count(), event));
}

}  // namespace howmany
