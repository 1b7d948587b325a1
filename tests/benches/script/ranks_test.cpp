// SPDX-License-Identifier: Apache-2.0
#include "benches/script/ranks.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "core/base/schema/marks.h"
#include "core/base/schema/metrics.h"
#include "core/base/text/files.h"
#include "tests/reports/folder.h"
#include "tests/support/message_of.h"

namespace howmany::benches {
namespace {

using reports::TemporaryFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

// A record of five steps, of which steps 2 to 4 are timed.
std::vector<Json> record(int rank, int world, double seconds) {
  std::vector<Json> lines = {{{"kind", "start"},
                              {"rank", rank},
                              {"world", world},
                              {"threads", 3},
                              {"parameters", 100},
                              {"device", "cpu"},
                              {"parallel", world > 1 ? "ddp" : "single"},
                              {"backend", world > 1 ? "gloo" : ""}}};
  for (int step = 0; step < 5; ++step)
    lines.push_back({{"kind", "step"},
                     {"step", step},
                     {"s", step < 2 ? 100 : seconds * step},
                     {"wait_s", seconds * step / 4},
                     {"backward_s", seconds * step / 2},
                     {"optimizer_s", 0},
                     {"samples", 16},
                     {"forwarded", 8},
                     {"backwards", 1},
                     {"phases",
                      {{"data_s", seconds * step / 4},
                       {"epochs_s", 0},
                       {"outside_s", 0},
                       {"backward_s", seconds * step / 2},
                       {"optimizer_s", 0},
                       {"blocked_s", 0}}}});
  lines.push_back({{"kind", "end"},
                   {"complete", true},
                   {"loader", true},
                   {"peak_bytes", 1000 + rank},
                   {"recording_s", 1e-6},
                   {"persistent_workers", false},
                   {"workers", 2},
                   {"detail", nullptr},
                   {"gradient_bytes", 400},
                   {"optimizer_in_backward", false},
                   {"by_backward", false},
                   {"first", 2},
                   {"last", 4},
                   {"cycles", Json::array()},
                   {"alone", 0}});
  return lines;
}

Json turn(int workers, int first, int last) {
  return {{"kind", "turn"},
          {"round", 0},
          {"workers", workers},
          {"own", workers == 0},
          {"prefetch", 2},
          {"first", first},
          {"last", last},
          {"batch_bytes", 64},
          {"first_batch_s", 0.25},
          {"alone_samples_per_s", 500},
          {"bytes_per_worker", workers > 0 ? Json(7) : Json()}};
}

// A record with a turn of no workers (step 2) and one of two (steps 3 and 4).
std::vector<Json> record_with_turns(int rank, int world, double seconds) {
  std::vector<Json> lines = record(rank, world, seconds);
  lines.insert(lines.end() - 1, {turn(0, 2, 2), turn(2, 3, 4)});
  return lines;
}

Json cycle(int first, int last) { return {{"first", first}, {"last", last}}; }

// The gradients and the parameters have these sums in steps 2 and 3.
Json exchange(const std::string& gradients, const std::string& parameters) {
  Json sums = Json::array();
  for (const int step : {2, 3})
    sums.push_back({{"step", step}, {"gradients", gradients}, {"parameters", parameters}});
  return {{"steps", 4}, {"within", 0}, {"elsewhere", 0}, {"sums", sums}};
}

class ScriptRanks : public ::testing::Test {
 protected:
  void write(int rank, const std::vector<Json>& lines) {
    std::ofstream file(folder_ / ("rank" + std::to_string(rank) + ".77.jsonl"));
    for (const Json& line : lines) file << line.dump() << "\n";
  }
  std::string refusal(int devices, const ScriptEnd& ended = {}) {
    return message_of<std::exception>([&] {
      read_ranks(folder_.path(), {devices, devices}, ended);
    });
  }
  TemporaryFolder folder_;
};

TEST_F(ScriptRanks, TakesTheSlowestRankOfEachTimedStepAndTheSamplesOfAll) {
  write(0, record(0, 2, 1));
  write(1, record(1, 2, 2));
  const ScriptSteps steps = read_ranks(folder_.path(), {2, 2}, {});
  EXPECT_THAT(steps.seconds, ElementsAre(4, 6, 8));
  EXPECT_EQ(steps.global_batch, 32);
  EXPECT_EQ(steps.ranks, 2);
  EXPECT_EQ(steps.threads, 3);
  EXPECT_EQ(steps.parallel + " " + steps.backend, "ddp gloo");
  EXPECT_DOUBLE_EQ(steps.counters.at(metric::kDataWaitFraction), 0.25);
  EXPECT_DOUBLE_EQ(steps.counters.at(metric::kBackwardFraction), 0.5);
  EXPECT_DOUBLE_EQ(steps.counters.at(metric::kWarmupSteps), 2);
  EXPECT_DOUBLE_EQ(steps.counters.at(metric::kPeakBytesPerDevice), 1001);
}

Json counted(int world) {
  return {{"kind", "counted"}, {"way", "shapes"}, {"world", world},
          {"samples", 8},      {"kinds", {1, 2}}, {"order", {0, 1}}};
}

TEST_F(ScriptRanks, ACountedStepComesBackAsTheHookWroteIt) {
  std::vector<Json> lines = record(0, 4, 1);
  write(0, {lines.front(), counted(4)});
  const ScriptSteps steps = read_counted(folder_.path(), {});
  Json expected = counted(4);
  expected.erase("kind");
  EXPECT_EQ(Json(steps.counted), expected);
  EXPECT_EQ(steps.ranks, 4);
  EXPECT_EQ(steps.parallel + " " + steps.backend, "ddp gloo");
  EXPECT_EQ(steps.seconds.size(), 1U);
}

TEST_F(ScriptRanks, ARefusedCountIsOne) {
  write(0, {record(0, 1, 1).front(), {{"kind", "counted"}, {"refused", "a CUDA extension"}}});
  EXPECT_EQ(read_counted(folder_.path(), {}).counted["refused"], "a CUDA extension");
}

TEST_F(ScriptRanks, NoCountIsAnErrorWithTheEndOfTheCommand) {
  const auto why = [&](const ScriptEnd& ended) {
    return message_of<std::exception>([&] { read_counted(folder_.path(), ended); });
  };
  EXPECT_THAT(why({false, "exited with 1: no data"}), HasSubstr("no data"));
  write(0, {record(0, 1, 1).front()});
  EXPECT_THAT(why({false, "exited with 1: no disk"}), HasSubstr("no disk"));
  Json bad = counted(0);
  write(0, {record(0, 1, 1).front(), bad});
  EXPECT_THAT(why({}), HasSubstr("world"));
}

TEST_F(ScriptRanks, OneProcessOfARehearsalStandsForAllRanks) {
  std::vector<Json> lines = record(0, 64, 1);
  const auto collective = [](int step, double at) {
    return Json{{"kind", "collective"}, {"step", step}, {"op", "all_reduce"},
                {"bytes", 400},         {"ranks", 64},  {"stride", 1},
                {"at_s", at},           {"s", 0.5},     {"backward", 0}};
  };
  lines.insert(lines.end() - 1, {collective(3, 0.25), collective(3, 0.5), collective(4, 1)});
  write(0, lines);
  const ScriptSteps steps = read_ranks(folder_.path(), {64, 1}, {});
  EXPECT_EQ(steps.ranks, 64);
  EXPECT_EQ(steps.global_batch, 64 * 16);
  ASSERT_EQ(steps.logged.size(), 2U);
  EXPECT_EQ(steps.logged[0].seconds, 3);
  ASSERT_EQ(steps.logged[0].collectives.size(), 2U);
  EXPECT_EQ(steps.logged[0].collectives[1].at, 0.5);
  EXPECT_EQ(steps.logged[1].collectives[0].bytes, 400);
  EXPECT_THAT(message_of<std::exception>([&] {
                read_ranks(folder_.path(), {64, 2}, {});
              }),
              HasSubstr("1 of 2 ranks recorded"));
}

TEST_F(ScriptRanks, NamesWhatIsMissing) {
  EXPECT_THAT(refusal(1, {false, "exited with 3: no data"}), HasSubstr("exited with 3: no data"));
  EXPECT_THAT(refusal(1), HasSubstr("before a training step"));
  EXPECT_THAT(refusal(1), HasSubstr("Needed: torch"));
  write_text(folder_.path() + "/process.7.json", R"({"python": "/bin/python", "uses": []})");
  EXPECT_THAT(refusal(1), HasSubstr("It imported torch"));
  std::vector<Json> lines = record(0, 1, 1);
  write(0, {lines[0]});
  EXPECT_THAT(refusal(1), HasSubstr("no measurement was completed"));
  lines.back()["complete"] = false;
  write(0, lines);
  EXPECT_THAT(refusal(1), HasSubstr("Give it more data"));
  const std::string failed = refusal(1, {false, "exited with 1: no data"});
  EXPECT_THAT(failed, HasSubstr("after 5 steps"));
  EXPECT_THAT(failed, HasSubstr("no data"));
  EXPECT_THAT(failed, Not(HasSubstr("Give it more data")));
  write(0, {{{"kind", "failed"}, {"rank", 0}, {"why", "TypeError: x"}}});
  EXPECT_THAT(refusal(1), HasSubstr("TypeError: x"));
}

TEST_F(ScriptRanks, TakesTheTimedStepsOfAScriptThatEndsWithCode0) {
  for (const int rank : {0, 1}) {
    std::vector<Json> lines = record(rank, 2, 1);
    lines.back()["complete"] = false;
    if (rank == 1) lines.back().erase("first");
    for (int step = 5; step < 8 + rank; ++step) {
      Json line = lines[4];
      line["step"] = step;
      lines.insert(lines.end() - 1, line);
    }
    if (rank == 0) lines.back()["last"] = 7;
    write(rank, lines);
  }
  const ScriptSteps steps = read_ranks(folder_.path(), {2, 2}, {});
  EXPECT_EQ(steps.seconds.size(), 6U);
  EXPECT_THAT(steps.flags, ElementsAre(mark::kEndedByItself));
  EXPECT_THAT(refusal(2, {false, "exited with 1"}), HasSubstr("exited with 1"));
}

TEST_F(ScriptRanks, CountsInputsIfOneRankFetchesForOthers) {
  std::vector<Json> lines = record(0, 2, 1);
  for (Json& line : lines)
    if (line["kind"] == "step") line["samples"] = 32;
  write(0, lines);
  write(1, record(1, 2, 1));
  EXPECT_EQ(read_ranks(folder_.path(), {2, 2}, {}).global_batch, 16);
}

TEST_F(ScriptRanks, TakesWholeCyclesIfLongStepsRecur) {
  std::vector<Json> lines = record(0, 1, 1);
  lines.back()["cycles"] = {cycle(2, 2), cycle(3, 3)};
  write(0, lines);
  const ScriptSteps steps = read_ranks(folder_.path(), {1, 1}, {});
  ASSERT_EQ(steps.seconds.size(), 2U);
  EXPECT_DOUBLE_EQ(quantile(steps.seconds, 0.5), (2 + 3) / 2.0);
  EXPECT_EQ(steps.counters.at(metric::kCycles), 2);
  EXPECT_THAT(steps.flags, ElementsAre());
}

TEST_F(ScriptRanks, SaysThatALongStepDidNotRecur) {
  std::vector<Json> lines = record(0, 1, 1);
  lines.back()["alone"] = 0.06;
  write(0, lines);
  EXPECT_THAT(read_ranks(folder_.path(), {1, 1}, {}).flags, ElementsAre(mark::kNoWholeCycle));
}

TEST_F(ScriptRanks, RefusesCyclesOutsideOfTheTimedSteps) {
  for (const Json& wrong : {Json{cycle(1, 3)}, Json{cycle(2, 5)}, Json{cycle(3, 2)},
                            Json{cycle(2, 3), cycle(3, 4)}, Json(7)}) {
    std::vector<Json> lines = record(0, 1, 1);
    lines.back()["cycles"] = wrong;
    write(0, lines);
    EXPECT_NE(refusal(1), "") << wrong;
  }
}

TEST_F(ScriptRanks, SaysThatNoGradientsAreExchangedIfRanksDiffer) {
  const Json quiet = exchange("1", "5"), other = exchange("2", "6");
  const auto flags = [&](const Json& zero, const Json& one, int parameters = 100) {
    for (const int rank : {0, 1}) {
      std::vector<Json> lines = record(rank, 2, 1);
      lines.back()["exchange"] = rank == 0 ? zero : one;
      if (rank == 1) lines.front()["parameters"] = parameters;
      write(rank, lines);
    }
    return read_ranks(folder_.path(), {2, 2}, {}).flags;
  };
  EXPECT_THAT(flags(quiet, other), ElementsAre(mark::kNoExchange));
  Json logs = other;  // a collective now and then, such as of the mean loss
  logs["elsewhere"] = 1;
  EXPECT_THAT(flags(quiet, logs), ElementsAre(mark::kNoExchange));
  Json averages = other;
  averages["within"] = 1;
  Json sharded = other;  // tensor parallelism by hand
  sharded["elsewhere"] = 4;
  Json none = other;
  none["sums"] = Json::array();
  EXPECT_THAT(flags(quiet, averages), ElementsAre());
  EXPECT_THAT(flags(quiet, sharded), ElementsAre());
  EXPECT_THAT(flags(quiet, none), ElementsAre());
  EXPECT_THAT(flags(quiet, exchange("1", "6")), ElementsAre()) << "gradients are the same";
  EXPECT_THAT(flags(quiet, exchange("2", "5")), ElementsAre()) << "local SGD";
  EXPECT_THAT(flags(quiet, other, 99), ElementsAre()) << "stages of a pipeline";
  EXPECT_THAT(flags(quiet, nullptr), ElementsAre());
}

TEST_F(ScriptRanks, CountsTheShareThatTryDdpWraps) {
  std::vector<Json> lines = record(0, 1, 1);
  lines.back()["wrapped"] = 0.25;
  write(0, lines);
  EXPECT_EQ(read_ranks(folder_.path(), {1, 1}, {}).counters.at(metric::kWrappedFraction), 0.25);
}

TEST_F(ScriptRanks, SaysThatStepsAreBackwardPasses) {
  std::vector<Json> lines = record(0, 1, 1);
  lines.back()["by_backward"] = true;
  write(0, lines);
  EXPECT_THAT(read_ranks(folder_.path(), {1, 1}, {}).flags, ElementsAre(mark::kByBackward));
}

TEST_F(ScriptRanks, NamesTheFolderThatTheScriptRemoved) {
  EXPECT_THAT(message_of<std::exception>([&] {
                read_ranks("/nonexistent", {1, 1}, {});
              }),
              HasSubstr("removed /nonexistent"));
}

TEST_F(ScriptRanks, RefusesAGroupOfAnotherSize) {
  write(0, record(0, 4, 1));
  EXPECT_THAT(refusal(2), HasSubstr("4 ranks"));
  write(0, record(0, 2, 1));
  EXPECT_THAT(refusal(2), HasSubstr("1 of 2 ranks"));
  std::vector<Json> other = record(1, 2, 1);
  other.back()["last"] = 3;
  write(1, other);
  EXPECT_THAT(refusal(2), HasSubstr("different steps"));
}

TEST_F(ScriptRanks, WithoutSamplesAsksForThem) {
  std::vector<Json> lines = record(0, 1, 1);
  for (Json& line : lines)
    if (line["kind"] == "step") line["samples"] = 0;
  write(0, lines);
  EXPECT_THAT(refusal(1), HasSubstr("--samples-per-step"));
}

TEST_F(ScriptRanks, AnInvisibleLoaderLeavesTheWaitUnknown) {
  std::vector<Json> lines = record(0, 1, 1);
  lines.back()["loader"] = false;
  write(0, lines);
  const ScriptSteps steps = read_ranks(folder_.path(), {1, 1}, {});
  EXPECT_FALSE(steps.counters.contains(metric::kDataWaitFraction));
  EXPECT_THAT(steps.flags, ElementsAre("data wait not visible"));
}

TEST_F(ScriptRanks, OfAGpuShowNoSharesByTheHostsClock) {
  std::vector<Json> lines = record(0, 1, 1);
  lines[0]["device"] = "cuda";
  write(0, lines);
  EXPECT_FALSE(read_ranks(folder_.path(), {1, 1}, {}).counters.contains(metric::kBackwardFraction));
}

TEST_F(ScriptRanks, RefusesRecordsThatTheHookDidNotWrite) {
  const std::vector<std::pair<std::string, Json>> changes = {
      {"s", -1},      {"s", "1"},      {"samples", -1},    {"samples", int64_t{1} << 50},
      {"wait_s", {}}, {"rank", 99999}, {"world", 0},       {"threads", 0},
      {"first", 4},   {"last", 5},     {"peak_bytes", -1}, {"kind", 7}};
  for (const auto& [key, value] : changes) {
    std::vector<Json> lines = record(0, 1, 1);
    for (Json& line : lines)
      if (line.contains(key)) line[key] = value;
    if (key == "first") lines.back()["last"] = 3;
    write(0, lines);
    EXPECT_NE(refusal(1), "") << key << " " << value;
  }
}

TEST_F(ScriptRanks, TurnsAddRatesAndTakeTheSlowestRank) {
  write(0, record_with_turns(0, 2, 1));
  write(1, record_with_turns(1, 2, 2));
  const LoaderTurns turns = read_turns(folder_.path(), {});
  EXPECT_EQ(turns.ranks, 2);
  EXPECT_EQ(turns.global_batch, 32);
  ASSERT_EQ(turns.turns.size(), 2);
  EXPECT_TRUE(turns.turns[0].turn.own);
  const LoaderTurn& last = turns.turns[1];
  EXPECT_EQ(last.turn.workers, 2);
  EXPECT_THAT(last.seconds, ElementsAre(6, 8));
  EXPECT_EQ(last.samples, 64);
  EXPECT_DOUBLE_EQ(last.stall_fraction, 0.25);
  EXPECT_EQ(last.turn.alone_samples_per_s, 1000);
  EXPECT_EQ(last.turn.first_batch_s, 0.25);
  EXPECT_FALSE(turns.turns[0].turn.bytes_per_worker);
}

TEST_F(ScriptRanks, TurnsMustBeThoseOfAllRanks) {
  write(0, record_with_turns(0, 2, 1));
  write(1, record(1, 2, 1));
  const std::string why = message_of<std::exception>([&] { read_turns(folder_.path(), {}); });
  EXPECT_THAT(why, HasSubstr("different turns"));
}

TEST_F(ScriptRanks, TurnsNeedALoader) {
  write(0, record(0, 1, 1));
  const std::string why = message_of<std::exception>([&] { read_turns(folder_.path(), {}); });
  EXPECT_THAT(why, HasSubstr("DataLoader"));
}

TEST_F(ScriptRanks, TurnsOutsideOfTheStepsAreRefused) {
  std::vector<Json> lines = record(0, 1, 1);
  lines.insert(lines.end() - 1, turn(1, 3, 9));
  write(0, lines);
  EXPECT_NE(message_of<std::exception>([&] { read_turns(folder_.path(), {}); }), "");
}

}  // namespace
}  // namespace howmany::benches
