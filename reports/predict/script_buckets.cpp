// SPDX-License-Identifier: Apache-2.0
#include "reports/predict/script_buckets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <vector>

#include "core/base/schema/flags.h"
#include "core/base/schema/samples.h"
#include "core/base/text/json.h"
#include "reports/predict/replay.h"
#include "reports/results/bench_file.h"

namespace howmany::reports {
namespace {

constexpr double kRunSeconds = 0.5;
constexpr int kRanks = 2;

// The buckets of the last step.
std::vector<double> buckets_in(const BenchScratch& scratch) {
  std::vector<double> bytes;
  for (const SampleLine& line : read_samples(scratch.samples)) {
    const JsonNode node(line.json, sample_line::kSteps);
    const auto steps = node.find(sample_line::kSteps);
    if (!steps) continue;
    const StepLog log = step_log_from(steps->value(), kRanks, sample_line::kSteps);
    if (log.steps.empty()) continue;
    for (const LoggedCollective& one : log.steps.back().collectives)
      if (one.kind == Collective::kAllReduce && one.backward >= 0) bytes.push_back(one.bytes);
  }
  return bytes;
}

// Without characters that separate names.
std::string plain(std::string name) {
  std::ranges::replace_if(
      name,
      [](unsigned char c) { return std::isalnum(c) == 0 && c != '.' && c != '_' && c != '-'; },
      '_');
  return name;
}

}  // namespace

std::string script_buckets(const Script& script, const std::string& device,
                           const std::string& folder) {
  const BenchScratch scratch(folder);
  run_once(script, {flag::kDevices, device}, kRanks, kRunSeconds, scratch);
  const std::vector<double> bytes = buckets_in(scratch);
  if (bytes.empty())
    throw InputError(
        fmt::format("{} sends no gradient buckets: it does not train under DistributedDataParallel",
                    script.name));
  std::vector<std::string> words;
  for (const double one : bytes) words.push_back(fmt::format("{:.0f}", one));
  return fmt::format("{}={}", plain(script.name), fmt::join(words, ","));
}

}  // namespace howmany::reports
