// SPDX-License-Identifier: Apache-2.0
#include "reports/gpus/announce.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "core/base/text/format.h"
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

std::string duration(const Request& request, size_t runs) {
  const double count = static_cast<double>(runs);
  const double start = request.script.given() ? kSecondsPerScript : kSecondsPerRun;
  const double whole = count * request.rounds * (request.run_seconds + start);
  if (request.time_budget <= 0 || request.time_budget >= whole)
    return fmt::format("about {:.0f} s", whole);
  const double least = count * (start + (request.profile ? kSecondsPerProfile : 0));
  if (request.time_budget >= least) return fmt::format("up to {:.0f} s", request.time_budget);
  return fmt::format(
      "about {:.0f} s: --time-budget {:.0f} is too short to measure each configuration once", least,
      request.time_budget);
}

}  // namespace

std::string announcement(const Request& request, const std::string& folder) {
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
  return fmt::format(
      "Measuring {} on {} {}{} ({} in {}) for {}.\n"
      "Results: {}. Ctrl-C keeps the results so far. howmany --help lists other questions.\n",
      what, listed(counts), gpus ? "GPU" : "CPU device", request.counts.back() == 1 ? "" : "s",
      number(static_cast<int64_t>(runs.size()), "configuration"), number(request.rounds, "round"),
      duration(request, runs.size()), folder);
}

}  // namespace howmany::reports
