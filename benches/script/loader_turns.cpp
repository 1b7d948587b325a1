// SPDX-License-Identifier: Apache-2.0
#include "benches/script/loader_turns.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <numeric>

#include "benches/common/report.h"
#include "benches/script/ranks.h"
#include "core/base/error.h"
#include "core/base/private_folder.h"
#include "core/base/schema/metrics.h"
#include "core/base/schema/parameters.h"
#include "core/base/text/table.h"

namespace howmany::benches {
namespace {

std::string case_name(const ScriptFlags& flags) {
  return fmt::format("loader/script/{}", flags.name);
}

std::map<std::string, double> counters_of(const LoaderTurn& all) {
  const double seconds = std::accumulate(all.seconds.begin(), all.seconds.end(), 0.0);
  std::map<std::string, double> counters = {{metric::kSamplesPerS, all.samples / seconds},
                                            {metric::kStallFraction, all.stall_fraction}};
  const auto add = [&](const char* name, const std::optional<double>& value) {
    if (value) counters[name] = *value;
  };
  add(metric::kFirstBatchS, all.turn.first_batch_s);
  add(metric::kAloneSamplesPerS, all.turn.alone_samples_per_s);
  add(metric::kBytesPerWorker, all.turn.bytes_per_worker);
  return counters;
}

SampleLine line_of(const std::string& name, const LoaderTurns& turns, const LoaderTurn& all) {
  return {.name = name,
          .samples = {all.seconds, true},
          .flags = {},
          .parameters = {{parameter::kWorkers, std::to_string(all.turn.workers)},
                         {parameter::kPrefetch, std::to_string(all.turn.prefetch)},
                         {parameter::kOwn, all.turn.own ? "1" : "0"},
                         {parameter::kGlobalBatch, std::to_string(turns.global_batch)},
                         {parameter::kBytes, fmt::format("{:.0f}", all.turn.batch_bytes)},
                         {parameter::kDevice, turns.device}},
          .world = turns.ranks};
}

void add_case(const std::string& name, const std::function<void(benchmark::State&)>& body) {
  benchmark::RegisterBenchmark(name.c_str(), body)
      ->Iterations(1)
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond);
}

LoaderTurns measure(const ScriptFlags& flags) {
  const GuardedFolder folder;
  const ScriptEnd ended =
      run_script(flags.command, folder.path(), 3 * flags.command.seconds + flags.run_timeout);
  return read_turns(folder.path(), ended);
}

}  // namespace

void register_loader_turns(const ScriptFlags& flags) {
  const std::string name = case_name(flags);
  try {
    const auto turns = std::make_shared<const LoaderTurns>(measure(flags));
    for (const LoaderTurn& all : turns->turns) {
      const std::string each = fmt::format("{}/workers:{}", name, all.turn.workers);
      add_case(each, [&flags, &all, turns, each](benchmark::State& state) {
        report(state, {all.seconds, true}, counters_of(all));
        append_samples(flags.samples, line_of(each, *turns, all));
      });
    }
  } catch (const std::exception& e) {
    add_case(name, [why = Error(e.what())](benchmark::State& state) {
      report_failure(state, why);
      std::cerr << fmt::format("script_bench: {}\n", without_controls(why.what()));
    });
  }
}

}  // namespace howmany::benches
