// SPDX-License-Identifier: Apache-2.0
// Figures of a self-test trace.
#include "reports/regression/study/figures.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "core/base/text/table.h"
#include "reports/regression/study/replay.h"
#include "reports/regression/study/self_test.h"

namespace howmany::reports {
namespace {

using Json = nlohmann::ordered_json;
constexpr std::array kExtras = {1, 3, 5, 10};
constexpr std::array kPairs = {20, 30, 45};

Json share_json(const Share& share) {
  const Interval interval = interval_of(share);
  return {{"hits", share.hits},
          {"of", share.of},
          {"share", share.value()},
          {"low", interval.low},
          {"high", interval.high}};
}

std::string share_text(const Json& share) {
  if (share["of"] == 0) return "-";
  return fmt::format("{:.1f} % [{:.1f}, {:.1f}]", 100 * share["share"].get<double>(),
                     100 * share["low"].get<double>(), 100 * share["high"].get<double>());
}

Json unchanged_json(const Suite& base, const Suite& same, const GateRules& rules) {
  const GateTally gates = replay_gates(base, same, rules);
  const WindowTally windows = replay_windows(base, same, rules.pairs, rules.judge, 0);
  return {{"screen", rules.screen},
          {"pairs", rules.pairs},
          {"gates", gates.alarms.of},
          {"false_alarms", share_json(gates.alarms)},
          {"false_gains", share_json(gates.gains)},
          {"inconclusive", share_json(gates.inconclusive)},
          {"windows_with_alarm", share_json(windows.alarms)},
          {"intervals_cover_truth", share_json(windows.covered)}};
}

Json power_json(const Suite& base, const Suite& slow, int extra, int pairs,
                const JudgeOptions& options) {
  const WindowTally tally = replay_windows(base, slow, pairs, options, extra / 100.0);
  Json each = Json::object();
  for (const auto& [name, share] : tally.slower_each) each[name] = share_json(share);
  return {{"extra_percent", extra},
          {"pairs", pairs},
          {"found", share_json(tally.slower)},
          {"called_faster", share_json(tally.faster)},
          {"intervals_cover_truth", share_json(tally.covered)},
          {"found_by_benchmark", each}};
}

// Measuring one side after the other needs blocks of both halves. Only base and its copy have
// enough.
Json others_json(const std::vector<Launch>& launches, const Suite& base, const Suite& same, int n) {
  const auto apart = replay_others(base, same, n, false),
             turns = replay_others(base, same, n, true);
  Json list = Json::array();
  for (size_t i = 0; i < apart.size(); ++i) {
    Json one = {{"method", apart[i].method},
                {"launches_a_side", n},
                {"gates_with_alarm_one_side_after_the_other", share_json(apart[i].alarms)},
                {"gates_with_alarm_in_turns", share_json(turns[i].alarms)}};
    for (const int extra : kExtras) {
      const auto found = replay_others(base, suite_of(launches, slow_arm(extra)), n, true);
      one[fmt::format("found_{}_percent_in_turns", extra)] = share_json(found[i].slower);
    }
    list.push_back(std::move(one));
  }
  return list;
}

std::string unchanged_text(const Json& u) {
  return fmt::format(
      "Unchanged code: {} gates of {} + up to {} pairs\n"
      "  false alarms          {} of gates\n"
      "  called faster         {} of gates\n"
      "  inconclusive          {} of measurements\n"
      "  intervals hold truth  {} of {}\n\n",
      u["gates"].get<int64_t>(), u["screen"].get<int>(), u["pairs"].get<int>(),
      share_text(u["false_alarms"]), share_text(u["false_gains"]), share_text(u["inconclusive"]),
      share_text(u["intervals_cover_truth"]), u["intervals_cover_truth"]["of"].get<int64_t>());
}

std::string worst_text(const Json& each) {
  std::string name = "-";
  double least = 2;
  for (const auto& [key, share] : each.items()) {
    if (share["share"].get<double>() < least) {
      least = share["share"].get<double>();
      name = key;
    }
  }
  return least > 1 ? "-" : fmt::format("{} {:.0f} %", name, 100 * least);
}

std::string power_text(const Json& power) {
  Table table({{"more work"}, {"pairs"}, {"found"}, {"interval holds it"}, {"worst benchmark"}});
  for (const Json& row : power) {
    table.add({fmt::format("{} %", row["extra_percent"].get<int>()),
               std::to_string(row["pairs"].get<int>()), share_text(row["found"]),
               share_text(row["intervals_cover_truth"]), worst_text(row["found_by_benchmark"])});
  }
  return table.text() + "\n";
}

std::string others_text(const Json& others) {
  Table table({{"other methods, the same launches", Table::Align::kLeft},
               {"alarms, one side first"},
               {"alarms, interleaved"},
               {"found 5 %"},
               {"found 10 %"}});
  for (const Json& one : others) {
    table.add({one["method"].get<std::string>(),
               share_text(one["gates_with_alarm_one_side_after_the_other"]),
               share_text(one["gates_with_alarm_in_turns"]),
               share_text(one["found_5_percent_in_turns"]),
               share_text(one["found_10_percent_in_turns"])});
  }
  return table.text();
}

}  // namespace

Json figures(const std::vector<Launch>& launches, const GateRules& rules) {
  const Suite base = suite_of(launches, "base"), same = suite_of(launches, kSameArm);
  Json power = Json::array();
  for (const int extra : kExtras) {
    const Suite slow = suite_of(launches, slow_arm(extra));
    for (const int pairs : kPairs) {
      power.push_back(power_json(base, slow, extra, pairs, rules.judge));
    }
  }
  return {{"schema", "howmany.selftest/1"},
          {"launches", launches.size()},
          {"unchanged", unchanged_json(base, same, rules)},
          {"power", power},
          {"others", others_json(launches, base, same, rules.pairs)}};
}

std::string render_figures(const Json& figures) {
  return unchanged_text(figures["unchanged"]) + power_text(figures["power"]) +
         others_text(figures["others"]);
}

Json noise(const std::vector<Launch>& launches, int pairs) {
  const WindowTally tally =
      replay_windows(suite_of(launches, "base"), suite_of(launches, kSameArm), pairs, {}, 0);
  Json spread = Json::object();
  double largest = 0;
  for (const auto& [name, shifts] : tally.shifts) {
    const double typical = std::min(1.0, quantile(shifts, 0.95));
    spread[name] = typical;
    largest = std::max(largest, typical);
  }
  if (!tally.shifts.empty()) spread[""] = largest;  // for benchmarks not in the trace
  return {{"schema", "howmany.noise/1"}, {"pairs", pairs}, {"spread", spread}};
}

}  // namespace howmany::reports
