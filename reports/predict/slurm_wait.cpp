// SPDX-License-Identifier: Apache-2.0
#include "reports/predict/slurm_wait.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/base/process.h"
#include "core/base/schema/flags.h"
#include "reports/predict/decide.h"

namespace howmany::reports {
namespace {

constexpr double kSbatchSeconds = 20;
constexpr double kLeastMinutes = 5, kMostMinutes = 60 * 24 * 365, kMargin = 1.5;
constexpr std::string_view kStart = " to start at ";
constexpr const char* kTime = "%Y-%m-%dT%H:%M:%S";

std::string without_prefixes(std::string line) {
  for (const std::string_view start : {"sbatch: ", "error: ", "allocation failure: "})
    if (line.starts_with(start)) line.erase(0, start.size());
  return line;
}

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::vector<std::string> sbatch_of(const Forecast& f, const Offer& offer) {
  const int node = f.options.devices_per_node;
  const int nodes = (offer.devices + node - 1) / node, of_node = std::min(offer.devices, node);
  const double minutes =
      std::clamp(60 * kMargin * hours(offer, *f.options.samples).high, kLeastMinutes, kMostMinutes);
  std::vector<std::string> argv = {find_in_path("sbatch"),
                                   "--test-only",
                                   fmt::format("--nodes={}", nodes),
                                   fmt::format("--ntasks-per-node={}", of_node),
                                   fmt::format("--time={:.0f}", std::ceil(minutes)),
                                   "--wrap=true"};
  if (f.noun == kGpuNoun) argv.push_back(fmt::format("--gpus-per-node={}", of_node));
  return argv;
}

}  // namespace

SlurmAnswer slurm_answer(const std::string& line, double now) {
  const size_t at = line.find(kStart);
  std::tm start = {};
  start.tm_isdst = -1;
  if (at != std::string::npos && strptime(line.c_str() + at + kStart.size(), kTime, &start))
    return {std::max(0.0, (static_cast<double>(std::mktime(&start)) - now) / 3600), ""};
  return {{}, line.empty() ? "sbatch said nothing" : without_prefixes(line)};
}

void check_slurm_wait(const ForecastOptions& options) {
  if (!options.samples)
    throw InputError(fmt::format("{} needs {}", flag::kSlurmWait.name, flag::kSamples.name));
  if (find_in_path("sbatch").empty())
    throw InputError(fmt::format("{}: no sbatch in PATH", flag::kSlurmWait.name));
}

void ask_slurm(Forecast& f) {
  check_slurm_wait(f.options);
  for (Offer& offer : f.offers) {
    if (!offer.refused.empty()) continue;
    const ProcessResult ended =
        run_command({.argv = sbatch_of(f, offer), .timeout_seconds = kSbatchSeconds});
    const SlurmAnswer answer = slurm_answer(ended.last_line(), now_seconds());
    offer.wait_hours = answer.wait_hours;
    offer.no_start = answer.refused;
  }
  decide(f);
}

}  // namespace howmany::reports
