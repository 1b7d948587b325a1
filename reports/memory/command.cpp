// SPDX-License-Identifier: Apache-2.0
#include "reports/memory/command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "core/base/cli/number_check.h"
#include "core/base/cli/option.h"
#include "core/base/cli/output_options.h"
#include "core/base/process.h"
#include "core/base/schema/exit_codes.h"
#include "core/base/schema/flags.h"
#include "core/base/text/json.h"
#include "core/base/text/print_stderr.h"
#include "reports/memory/script_memory.h"
#include "reports/results/machine.h"

namespace howmany::reports {
namespace {

constexpr int kMaxRanks = 16'384;

struct MemoryArguments {
  std::vector<int> counts = {1};
  int64_t device_memory = 0;
  bool keep_private = false, in_copy = false, json = false, quiet = false;
};

int run_memory(const MemoryArguments& a, const std::vector<std::string>& command) {
  refuse_many_copies("it starts the command itself: start it once");
  std::string notice;
  Script script = script_from(command, &notice);
  script.in_copy = a.in_copy;
  if (a.keep_private) make_private(script);
  if (!notice.empty() && !a.quiet) print_stderr("{}\n", notice);
  catch_interrupts();
  std::vector<ScriptMemory> rows;
  for (const int ranks : a.counts) {
    if (!a.quiet)
      print_stderr("counting a step of {}{}\n", script.name,
                   ranks > 1 ? fmt::format(" as one of {} ranks", ranks) : "");
    rows.push_back(measure_memory(script, ranks, a.device_memory));
    if (interrupted()) return exit_code::kInterrupted;
  }
  const MemoryQuestion question{script.name, a.device_memory};
  fmt::print("{}", a.json ? dump_json(to_json(question, rows)) : render_memory(question, rows));
  const bool any = std::ranges::any_of(rows, [](auto& row) { return row.why.empty(); });
  return any ? exit_code::kFine : exit_code::kMeasurementFailed;
}

}  // namespace

void add_memory_command(CLI::App& sub, const std::vector<std::string>& command, int& code) {
  auto a = std::make_shared<MemoryArguments>();
  sub.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  add_option(sub, flag::kDeviceCount, a->counts, "1")
      ->delimiter(',')
      ->check(whole_between(1, kMaxRanks));
  add_memory(sub, flag::kDeviceMemory, a->device_memory, "not judged");
  add_switch(sub, flag::kPrivate, a->keep_private);
  add_switch(sub, flag::kInCopy, a->in_copy);
  add_json(sub, a->json);
  add_quiet(sub, a->quiet);
  sub.callback([a, &command, &code] {
    std::ranges::sort(a->counts);
    code = run_memory(*a, command);
  });
}

}  // namespace howmany::reports
