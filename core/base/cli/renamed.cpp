// SPDX-License-Identifier: Apache-2.0
#include "core/base/cli/renamed.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "core/base/schema/flags.h"

namespace howmany {
namespace {

struct Renamed {
  std::string_view program, old_name;
  Flag flag;
};

// Accepted in 0.2, refused from 0.3 on.
constexpr Renamed kRenamed[] = {
    {"backend_bench", "--budget-seconds", flag::kTimeBudget},
    {"backend_bench", "--least-calls", flag::kMinCalls},
    {"backend_bench", "--samples", flag::kSamplesFile},
    {"core_bench", "--budget", flag::kCaseBudget},
    {"core_bench", "--samples", flag::kSamplesFile},
    {"fidelity_bench", "--rounds", flag::kPairs},
    {"loader_bench", "--as", flag::kWorkerType},
    {"loader_bench", "--batch", flag::kBatchPerDevice},
    {"loader_bench", "--budget-seconds", flag::kCaseBudget},
    {"loader_bench", "--most-files", flag::kMaxFiles},
    {"loader_bench", "--samples", flag::kSamplesFile},
    {"loader_bench", "--timeout", flag::kBatchTimeout},
    {"selftest", "--timeout", flag::kRunTimeout},
    {"speedup_bench", "--budget-seconds", flag::kCaseBudget},
    {"speedup_bench", "--profile", flag::kTraceFile},
    {"speedup_bench", "--samples", flag::kSamplesFile},
    {"howmany train", "--batch", flag::kGlobalBatch},
    {"howmany train", "--samples", flag::kSyntheticSamples},
    {"transfer", "--batch", flag::kBatchPerDevice},
    {"transfer_bench", "--batch", flag::kBatchPerDevice},
    {"transfer_bench", "--budget-seconds", flag::kTimeBudget},
    {"transfer_bench", "--samples", flag::kSamplesFile},
    {"workers", "--as", flag::kWorkerType},
    {"workers", "--batch", flag::kBatchPerDevice},
    {"workers", "--devices", flag::kRanks},
    {"workers", "--stall", flag::kMaxWaitPercent},
};

}  // namespace

std::vector<std::string> with_current_names(const std::string& program,
                                            std::vector<std::string> arguments, bool warns) {
  for (std::string& argument : arguments) {
    if (argument == "--") break;  // a command of the user follows
    const std::string name = argument.substr(0, argument.find('='));
    const auto* const found = std::ranges::find_if(kRenamed, [&](const Renamed& renamed) {
      return renamed.program == program && renamed.old_name == name;
    });
    if (found == std::end(kRenamed)) continue;
    if (warns)
      fmt::print(stderr, "{}: {} is deprecated; use {}\n", program, name, found->flag.name);
    argument = found->flag.name + argument.substr(name.size());
  }
  return arguments;
}

}  // namespace howmany
