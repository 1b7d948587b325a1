// SPDX-License-Identifier: Apache-2.0
#include "reports/script/script.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "core/base/process.h"
#include "core/base/schema/context.h"
#include "core/base/schema/flags.h"
#include "core/base/schema/parameters.h"
#include "core/base/text/files.h"
#include "core/base/text/json.h"
#include "reports/cluster/cluster.h"
#include "reports/results/bench_file.h"
#include "reports/results/machine.h"

namespace howmany::reports {
namespace {

constexpr double kRunTimeout = 300;
constexpr double kNoTime = 1e-9;

Cluster without_costs(int ranks) {
  Cluster cluster;
  cluster.name = "free";
  cluster.devices_per_node = ranks;
  cluster.node.all_reduce[ranks] = {{1, kNoTime}, {1e15, 2 * kNoTime}};
  return cluster;
}

}  // namespace

void make_private(Script& script) {
  script.keep_private = true;
  script.name = "script";
}

Script script_from(const Words& words, std::string* notice, Script::Count count) {
  if (words.empty()) throw InputError("no command after --");
  refuse_flags_of_python(words);
  Script script;
  script.words = words;
  script.name = name_of(words);
  if (count == Script::Count::kAsGiven) return script;
  if (const std::optional<LaunchWords> launch = launch_words(words)) {
    script.words = launch->swept;
    script.one = launch->plain;
    *notice = launch->notice;
  }
  return script;
}

Words filled(const Words& words, const Nodes& nodes, int count, int ranks) {
  const std::string head = nodes.names.empty() ? name_of_this_node() : nodes.names.front();
  const Words all = replaced(replaced(replaced(words, kNodes, std::to_string(count)), kPerNode,
                                      std::to_string(ranks / count)),
                             kHead, head);
  if (nodes.launcher != "srun" || !has_nodes(words)) return all;
  return with_nodelist(all, {nodes.names.begin(), nodes.names.begin() + count});
}

Words on_nodes(const Script& script, const Nodes& nodes, int count, int ranks) {
  if (script.across.empty()) return filled(script.words, nodes, count, ranks);
  Words all = start_on(nodes, count, 1);
  const Words each = filled(script.across, nodes, count, ranks);
  all.insert(all.end(), each.begin(), each.end());
  return all;
}

Words flags_of(const Script& script) {
  Words flags;
  if (script.try_ddp) flags.emplace_back(flag::kTryDdp);
  if (script.tries) flags.emplace_back(flag::kTry);
  if (script.in_copy) flags.emplace_back(flag::kInCopy);
  if (script.keep_private) flags.emplace_back(flag::kPrivate);
  if (!script.rate.empty()) flags.insert(flags.end(), {flag::kRate, script.rate});
  if (script.samples_per_step > 0)
    flags.insert(flags.end(), {flag::kSamplesPerStep, std::to_string(script.samples_per_step)});
  return flags;
}

Words bench_words(const Script& script, double seconds, double timeout,
                  const BenchScratch& scratch) {
  Words argv = {find_program("script_bench"),
                flag::kModel,
                script.name,
                flag::kCaseBudget,
                fmt::format("{:.3f}", seconds),
                flag::kRunTimeout,
                fmt::format("{:.3f}", timeout),
                flag::kStartTimeout,
                fmt::format("{:.3f}", std::min(timeout, script.start_timeout)),
                flag::kSamplesFile,
                scratch.samples,
                "--benchmark_out=" + scratch.bench,
                "--benchmark_out_format=json"};
  const Words flags = flags_of(script);
  argv.insert(argv.end(), flags.begin(), flags.end());
  return argv;
}

void run_once(const Script& script, const Words& flags, int ranks, double seconds,
              const BenchScratch& scratch) {
  Words argv = bench_words(script, seconds, kRunTimeout, scratch);
  argv.insert(argv.end(), flags.begin(), flags.end());
  if (ranks > 1) {
    write_text(scratch.costs, dump_json(cost_table_with_groups(without_costs(ranks), ranks)));
    argv.insert(argv.end(), {flag::kRehearse, scratch.costs});
  }
  const bool starts_ranks = ranks == 1 || script.has_count();
  const Words words = filled(starts_ranks ? script.words : under_torchrun(script.words), {}, 1, 1);
  argv.emplace_back("--");
  argv.insert(argv.end(), words.begin(), words.end());
  const ProcessResult ended =
      run_command({.argv = argv, .timeout_seconds = seconds + kRunTimeout + 10});
  if (ended.how == ProcessResult::How::kExited && ended.code == 2)
    throw InputError(ended.last_line());
  if (!ended.ok()) throw std::runtime_error(ended.last_line());
}

std::string environment_note(const Summary& summary) {
  const auto found = summary.context.find(context::kScriptEnvironment);
  if (found == summary.context.end() || !found->is_string()) return "";
  return fmt::format("Set for your command: {}.", found->get<std::string>());
}

}  // namespace howmany::reports
