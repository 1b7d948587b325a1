// SPDX-License-Identifier: Apache-2.0
#include "reports/gpus/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/schema/metrics.h"
#include "core/base/text/format.h"
#include "core/base/text/print_stderr.h"
#include "core/base/text/table.h"
#include "reports/results/device_kind.h"

namespace howmany::reports {
namespace {

// The start of the processes, the model, the warm-up and the fewest timed steps.
constexpr double kSecondsPerRun = 2, kSecondsPerProfile = 1;
constexpr double kSecondsPerScript = 8;  // Python and torch start too

// "a", "a and b", "a, b and c"
std::string listed(const std::vector<std::string>& words) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i)
    text += (i == 0 ? "" : i + 1 == words.size() ? " and " : ", ") + words[i];
  return text;
}

void add_unique(std::vector<std::string>& words, const std::string& word) {
  if (std::ranges::find(words, word) == words.end()) words.push_back(word);
}

double seconds_per_start(const Request& request) {
  if (!request.script.given()) return kSecondsPerRun;
  return request.script.start_seconds > 0 ? request.script.start_seconds : kSecondsPerScript;
}

std::string about(double seconds) {
  return seconds < 120 ? fmt::format("about {:.0f} s", seconds)
                       : fmt::format("about {:.0f} min", std::ceil(seconds / 60));
}

std::string duration(const Request& request, size_t runs) {
  const double count = static_cast<double>(runs), start = seconds_per_start(request);
  const double whole = count * request.rounds * (request.run_seconds + start);
  const std::string because = request.script.start_seconds > 0
                                  ? fmt::format(": the script starts in {:.0f} s", std::ceil(start))
                                  : "";
  if (request.time_budget <= 0 || request.time_budget >= whole) return about(whole) + because;
  const double least = count * (start + (request.profile ? kSecondsPerProfile : 0));
  if (request.time_budget >= least)
    return fmt::format("up to {:.0f} s; --time-budget {:.0f} would hold every round",
                       request.time_budget, std::ceil(whole));
  return fmt::format(
      "{}: --time-budget {:.0f} is too short to measure each configuration once, {:.0f} would hold "
      "every round",
      about(least), request.time_budget, std::ceil(whole));
}

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

ProgressReport::ProgressReport(bool quiet)
    : quiet_(quiet), terminal_(::isatty(STDERR_FILENO) == 1) {}

ProgressReport::~ProgressReport() { clear(); }

void ProgressReport::clear() {
  if (drawn_) print_stderr("\r\033[K");
  drawn_ = false;
}

void ProgressReport::report(const std::string& text) {
  if (!quiet_) print_stderr("{}\n", text);
}

void ProgressReport::report_start(const Request& request, const std::string& folder) {
  if (quiet_) return;
  const std::vector<Configuration> runs = configurations(request);
  std::vector<std::string> models, modes, counts;
  for (const Configuration& run : runs) {
    add_unique(models, run.model);
    add_unique(modes, run.mode);
  }
  for (const int count : request.counts) counts.push_back(std::to_string(count));
  const bool gpus = device_kind(request.devices.front()) == DeviceKind::kGpu;
  const std::string what = request.script.given()
                               ? request.script.name
                               : fmt::format("{} with {}", listed(models), listed(modes));
  print_stderr(
      "Measuring {} on {} {}{} ({} in {}) for {}.\n"
      "Results: {}. Ctrl-C keeps the results so far. howmany --help lists other questions.\n",
      what, listed(counts), gpus ? "GPU" : "CPU device", request.counts.back() == 1 ? "" : "s",
      number(static_cast<int64_t>(runs.size()), "configuration"), number(request.rounds, "round"),
      duration(request, runs.size()), folder);
}

void ProgressReport::report_step(const MeasureOptions::Progress& p) {
  if (quiet_) return;
  const bool failed = p.finished != nullptr && !p.finished->row.error.empty();
  if (p.finished != nullptr && (!terminal_ || failed)) {
    clear();
    print_stderr("[{}/{}] {}: {} ({})\n", p.done, p.all, p.what, outcome(*p.finished), times(p));
  }
  if (!terminal_ || p.finished != nullptr) return;
  std::string line = fmt::format("[{}/{}] {}  {}", p.done + 1, p.all, p.what, times(p));
  line.resize(std::min(line.size(), terminal_width() - 1));  // a wrapped line cannot be rewritten
  print_stderr("\r\033[K{}", line);
  std::fflush(stderr);
  drawn_ = true;
}

void ProgressReport::report_end(const Results& results, const std::string& folder) {
  clear();
  if (results.interrupted)
    print_stderr("interrupted: the results so far are kept; continue with --resume {}\n", folder);
  else if (const BenchRun* const failed = first_failed(results))
    print_stderr("howmany: a measurement failed: {}\n", failed->row.error);
  if (results.out_of_time)
    print_stderr(
        "the time budget was spent before every round was measured; --time-budget {:.0f} "
        "would hold them\n",
        std::ceil(results.whole_seconds));
}

}  // namespace howmany::reports
