// SPDX-License-Identifier: Apache-2.0
#include "reports/gpus/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cmath>

#include "core/base/schema/metrics.h"
#include "core/base/text/format.h"
#include "core/base/text/table.h"

namespace howmany::reports {
namespace {

size_t terminal_width() {
  winsize size = {};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

std::string times(const MeasureOptions::Progress& p) {
  return fmt::format("{} elapsed, about {} left", format_seconds(std::round(p.elapsed)),
                     format_seconds(std::round(p.left)));
}

std::string outcome(const BenchRun& run) {
  if (!run.row.error.empty()) return "failed: " + printable(run.row.error);
  const auto& counters = run.row.counters;
  if (counters.contains(metric::kWarmupLines))  // there may be no time of a step
    return format_count(counters.at(metric::kSamplesPerS)) + " samples/s";
  return format_seconds(median(run.samples.seconds)) + " a step";
}

}  // namespace

ProgressLine::ProgressLine(bool quiet) : quiet_(quiet), terminal_(::isatty(STDERR_FILENO) == 1) {}

ProgressLine::~ProgressLine() { clear(); }

void ProgressLine::clear() {
  if (drawn_) fmt::print(stderr, "\r\033[K");
  drawn_ = false;
}

void ProgressLine::show(const MeasureOptions::Progress& p) {
  if (quiet_) return;
  const bool failed = p.finished != nullptr && !p.finished->row.error.empty();
  if (p.finished != nullptr && (!terminal_ || failed)) {
    clear();
    fmt::print(stderr, "[{}/{}] {}: {} ({})\n", p.done, p.all, p.what, outcome(*p.finished),
               times(p));
  }
  if (!terminal_ || p.finished != nullptr) return;
  std::string line = fmt::format("[{}/{}] {}  {}", p.done + 1, p.all, p.what, times(p));
  line.resize(std::min(line.size(), terminal_width() - 1));  // a wrapped line cannot be rewritten
  fmt::print(stderr, "\r\033[K{}", line);
  std::fflush(stderr);
  drawn_ = true;
}

}  // namespace howmany::reports
