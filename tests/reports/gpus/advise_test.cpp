// SPDX-License-Identifier: Apache-2.0
#include "reports/gpus/advise.h"
#include "core/base/schema/parameters.h"
#include "core/base/schema/reasons.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "core/base/schema/marks.h"
#include "core/base/schema/metrics.h"
#include "reports/gpus/measure.h"
#include "reports/gpus/render.h"
#include "tests/reports/examples.h"

namespace howmany::reports {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Matches;
using ::testing::Not;
using ::testing::StartsWith;

Plan plan_for(std::vector<int> counts, int rounds = 3) {
  Plan plan;
  plan.request.workloads = {{"mlp", 64}};
  plan.request.modes = {"ddp"};
  plan.request.backends = {"gloo"};
  plan.request.counts = std::move(counts);
  plan.request.rounds = rounds;
  for (int i = 0; i < plan.request.counts.back(); ++i) {
    plan.request.devices.push_back("cuda:" + std::to_string(i));
  }
  return plan;
}

// Returns the step time of a configuration relative to one device.
using EfficiencyOf = std::function<double(const Configuration&)>;

// Amdahl's law with equal work per device.
double amdahl_efficiency(double serial, int n) { return 1 / (1 - serial + serial * n); }
EfficiencyOf amdahl(double serial) {
  return [=](const Configuration& c) { return 1 / amdahl_efficiency(serial, c.devices); };
}

Results results_of(const Plan& plan, const EfficiencyOf& curve, double noise, uint64_t seed = 1) {
  std::mt19937_64 rng(seed);
  std::normal_distribution<double> normal(0, 1);
  Results results;
  const auto all = configurations(plan.request);
  for (size_t i = 0; i < all.size(); ++i) {
    for (int round = 0; round < plan.request.rounds; ++round) {
      BenchRun run{i, round, {}, {}};
      const double level = curve(all[i]) * std::exp(noise * normal(rng));
      for (int k = 0; k < 10; ++k) {
        run.samples.seconds.push_back(level * std::exp(noise / 4 * normal(rng)));
      }
      results.runs.push_back(run);
    }
  }
  return results;
}

// `share`: of the parameters in DistributedDataParallel on two devices.
Advice advice_with_wrapped(double share) {
  const Plan plan = plan_for({1, 2});
  std::vector<Measurement> rows = measurements(plan, results_of(plan, amdahl(0.02), 0.002));
  for (Measurement& row : rows) {
    const bool one = row.parameters.at(parameter::kDevices) == "1";
    row.metrics[metric::kWrappedFraction] = {one ? 0 : share, "ratio", {}, {}, 1, "rounds"};
  }
  return advise(rows, {.min_efficiency = 0.8}).at(0);
}

TEST(Advise, DoubtsTryDdpOnlyIfItHoldsAPartOfTheParametersOnSeveralDevices) {
  EXPECT_TRUE(advice_with_wrapped(1).certain);
  EXPECT_FALSE(advice_with_wrapped(0.5).certain);
}

Advice advice_on(const Plan& plan, const Results& results, double min_efficiency = 0.8) {
  return advise(measurements(plan, results), {.min_efficiency = min_efficiency}).at(0);
}

Advice advice_on(const EfficiencyOf& curve, double min_efficiency = 0.8) {
  const Plan plan = plan_for({1, 2, 4, 8});
  return advice_on(plan, results_of(plan, curve, 0), min_efficiency);
}

Measurement& of(std::vector<Measurement>& all, const char* mode, const char* devices) {
  for (Measurement& m : all) {
    if (m.parameters["mode"] == mode && m.parameters["devices"] == devices) return m;
  }
  throw std::runtime_error("no such measurement");
}

TEST(Advise, CallsDevicesWhatTheyAre) {
  for (const auto& [second, word] : {std::pair("cuda:1", "2 GPUs"), {"cpu:0", "2 devices"}}) {
    Plan plan = plan_for({1, 2});
    plan.request.devices[1] = second;
    EXPECT_THAT(advice_on(plan, results_of(plan, amdahl(0.01), 0)).because, HasSubstr(word));
  }
}

TEST(Advise, FindsTheLargestNumberOnCurvesWithoutNoise) {
  const Plan plan = plan_for({1, 2, 3, 4, 8, 16, 32, 64});
  for (double serial : {0.0, 0.003, 0.01, 0.03, 0.07, 0.1, 0.2, 0.24, 0.3, 0.9}) {
    int truth = 1;
    for (const int n : plan.request.counts) {
      if (amdahl_efficiency(serial, n) >= 0.8) truth = n;
    }
    const Advice advice = advice_on(plan, results_of(plan, amdahl(serial), 0));
    EXPECT_EQ(advice.recommended, truth) << "serial share " << serial;
    EXPECT_TRUE(advice.certain) << "serial share " << serial;
  }
}

// Other programs disturbed one of three rounds.
TEST(Advise, IsUncertainIfARoundStayedDisturbed) {
  const Plan plan = plan_for({1, 2});
  Results results = results_of(plan, amdahl(0.01), 0);
  for (BenchRun& run : results.runs) run.row.counters[metric::kBusyElsewhereFraction] = 0.05;
  EXPECT_TRUE(advice_on(plan, results).certain);
  EXPECT_FALSE(advice_on(plan, results).disturbed);
  results.runs.back().row.counters[metric::kBusyElsewhereFraction] = 0.4;
  const Advice advice = advice_on(plan, results);
  EXPECT_FALSE(advice.certain);
  EXPECT_TRUE(advice.disturbed);
  EXPECT_EQ(advice.recommended, 2);
  const auto json = to_json(std::vector<Advice>{advice}, AdviceOptions{});
  EXPECT_EQ(json["certain"], false);
  EXPECT_EQ(json["disturbed"], true);
}

// Uses random curves with noise between runs. Recommendations below the threshold must not be more
// frequent than the interval allows. A number with a margin must be found.
TEST(Advise, IsRightUnderNoiseAsOftenAsItPromises) {
  constexpr int kTrials = 400;
  constexpr double kNoise = 0.01;
  const Plan plan = plan_for({1, 2, 4, 8, 16, 32}, 5);
  std::mt19937_64 rng(3);
  int short_of_it = 0, too_few = 0, with_margin = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    const double serial =
        std::exp(std::uniform_real_distribution(std::log(0.003), std::log(0.5))(rng));
    const Advice advice = advice_on(plan, results_of(plan, amdahl(serial), kNoise, rng()));
    const int n = advice.recommended.value();
    short_of_it += n > 1 && amdahl_efficiency(serial, n) < 0.8;
    int easy = 1;  // from 0.84, even an unlucky interval of 5 rounds reaches 0.8
    for (const int count : plan.request.counts) {
      if (amdahl_efficiency(serial, count) >= 0.84) easy = count;
    }
    with_margin += easy > 1;
    too_few += n < easy;
  }
  // 2.5 % is the one-sided error at a curve that just fails; the limit is five standard errors
  // above.
  EXPECT_LE(short_of_it, (0.025 + 5 * std::sqrt(0.025 * 0.975 / kTrials)) * kTrials);
  EXPECT_LE(too_few, 0.05 * with_margin);
  EXPECT_GT(with_margin, kTrials / 4);
}

TEST(Advise, AsksForFewerWhenMoreIsDemanded) {
  const Plan plan = plan_for({1, 2, 3, 4, 8, 16});
  const Results results = results_of(plan, amdahl(0.05), 0.01, 5);
  int before = 100;
  for (double demanded = 0.3; demanded < 1; demanded += 0.02) {
    const int n = advice_on(plan, results, demanded).recommended.value();
    EXPECT_LE(n, before) << demanded;
    before = n;
  }
  EXPECT_EQ(before, 1);
}

TEST(Advise, StatesTheReasonWithItsFigures) {
  const Advice advice = advice_on(amdahl(0.05));
  EXPECT_EQ(advice.recommended, 4);
  EXPECT_EQ(advice.reason, "pays");
  for (const char* figure : {"4 GPUs", "ddp over gloo", "3.48x", "0.87", "0.80"})
    EXPECT_THAT(advice.because, HasSubstr(figure));
  EXPECT_EQ(advice.mode, "ddp");
  EXPECT_EQ(advice.backend, "gloo");
  EXPECT_THAT(advice.notes, Contains(AllOf(HasSubstr("8 GPUs"), HasSubstr("1.70x"))));
}

TEST(Advise, StaysOnOneWhenNothingPays) {
  const Advice advice = advice_on(amdahl(0.9));
  EXPECT_EQ(advice.recommended, 1);
  EXPECT_TRUE(advice.certain);
  EXPECT_EQ(advice.reason, "does_not_pay");
}

TEST(Advise, NeverAsksForDevicesThatAreNotFasterThanOne) {
  for (const double speedup : {0.5, 0.9, 0.99}) {
    const EfficiencyOf slow = [=](const Configuration& c) {
      return c.devices == 1 ? 1 : c.devices / speedup;
    };
    const Advice advice = advice_on(slow, 0.01);
    EXPECT_EQ(advice.recommended, 1) << speedup;
    EXPECT_EQ(advice.reason, "not_faster") << speedup;
  }
  const EfficiencyOf only_four = [](const Configuration& c) {
    return c.devices == 1 ? 1.0 : c.devices == 4 ? 4 / 1.2 : c.devices / 0.9;
  };
  EXPECT_EQ(advice_on(only_four, 0.4).reason, "does_not_pay");
  const Advice pays = advice_on(amdahl(0.9), 0.01);  // 1.1 times as fast with 8
  EXPECT_EQ(pays.recommended, 8);
}

TEST(Advise, IsUncertainWhetherMoreIsFasterWhereTheIntervalSpansOne) {
  const Plan plan = plan_for({1, 2});
  Results results = results_of(plan, amdahl(1), 0);
  const double factors[] = {0.94, 1.0, 1.06};
  for (BenchRun& run : results.runs) {
    if (run.configuration != 2) continue;
    for (double& s : run.samples.seconds) s *= factors[run.round];
  }
  const Advice advice = advice_on(plan, results, 0.1);
  EXPECT_EQ(advice.recommended, 1);
  EXPECT_EQ(advice.reason, "uncertain_to_be_faster");
  EXPECT_THAT(advice.notes, Contains(HasSubstr("spans 0.50")));
}

TEST(Advise, SaysThatTheMostMeasuredMayNotBeTheMost) {
  EXPECT_THAT(advice_on(amdahl(0)).notes, Contains(StartsWith("8 was the largest")));
}

TEST(Advise, IsUncertainWhereTheIntervalSpansTheThreshold) {
  const Plan plan = plan_for({1, 2});
  Results results = results_of(plan, amdahl(0.22), 0);  // efficiency 0.82
  const double factors[] = {0.94, 1.0, 1.06};
  for (BenchRun& run : results.runs) {
    if (run.configuration != 2) continue;
    for (double& s : run.samples.seconds) s *= factors[run.round];
  }
  const Advice advice = advice_on(plan, results);
  EXPECT_EQ(advice.recommended, 1);
  EXPECT_FALSE(advice.certain);
  EXPECT_EQ(advice.reason, "uncertain_to_pay");
  EXPECT_THAT(advice.notes,
              Contains(AllOf(StartsWith("Uncertain at 2 GPUs"), HasSubstr("--rounds"))));
}

TEST(Advise, WithoutAnIntervalNothingIsCertain) {
  const Plan plan = plan_for({1, 2}, 1);
  Results results = results_of(plan, amdahl(0), 0);
  for (BenchRun& run : results.runs) run.samples.seconds.resize(5);
  const Advice advice = advice_on(plan, results);
  EXPECT_EQ(advice.recommended, 1);
  EXPECT_FALSE(advice.certain);
  EXPECT_THAT(advice.notes, Contains(HasSubstr("too few iterations")));
}

TEST(Advise, RatesOfRunsThatWaitForDataAreThoseOfAllTheirSteps) {
  const Plan plan = plan_for({1, 2});
  Results results = results_of(plan, amdahl(0), 0);
  for (BenchRun& run : results.runs) run.samples.seconds = {1, 1, 1, 1, 1, 15, 8};
  EXPECT_EQ(measurements(plan, results)[0].metrics.at("samples_per_s").value, 64);
  for (BenchRun& run : results.runs) run.row.counters["data_wait_fraction"] = 0.5;
  for (const Measurement& m : measurements(plan, results)) {
    const double devices = std::stod(m.parameters.at("devices"));
    EXPECT_EQ(m.metrics.at("median_s").value, 4);
    EXPECT_EQ(m.metrics.at("samples_per_s").value, 64 * devices / 4);
    EXPECT_EQ(m.metrics.at("min_s").value, 1);
    EXPECT_EQ(m.metrics.at("speedup").value, devices);
  }
}

TEST(Timeout, OfARunIsTwiceWhatIsLeftOfTheBudget) {
  EXPECT_EQ(timeout_within(3, kOnCpus), 30);  // the least
  EXPECT_EQ(timeout_within(20, kOnCpus), 40);
  EXPECT_EQ(timeout_within(1e9, kOnCpus), 120);
  EXPECT_EQ(timeout_within(20, kOnGpus), 120);
  EXPECT_EQ(timeout_within(1e9, kOnGpus), 600);
}

TEST(Advise, FailedAndOversubscribedNeverWin) {
  const Plan plan = plan_for({1, 2, 4});
  auto all = measurements(plan, results_of(plan, amdahl(0), 0));
  of(all, "ddp", "4").flags.push_back("oversubscribed");
  EXPECT_EQ(advise(all, {})[0].recommended, 2);
  of(all, "ddp", "2").flags.push_back("failed: peer gone");
  const Advice advice = advise(all, {})[0];
  EXPECT_EQ(advice.recommended, std::nullopt);
  EXPECT_EQ(advice.reason, reason::kOneDeviceMeasured);
  EXPECT_THAT(advice.notes, Contains(HasSubstr("Failed: ddp over gloo on 2 GPUs: peer gone")));
  EXPECT_THAT(advice.because, HasSubstr("no result on more than 1 GPU is valid"));
  of(all, "ddp", "4").flags = {"failed: peer gone"};
  EXPECT_THAT(advise(all, {})[0].because, HasSubstr("every run on more than 1 GPU failed"));
  of(all, "ddp", "2").flags.back() = "failed: peer gone.";
  EXPECT_THAT(advise(all, {})[0].notes, Contains(EndsWith("2 GPUs: peer gone.")));
}

TEST(Advise, SlowerKernelsAreNamedOnceAndMayWin) {
  const Plan plan = plan_for({1, 2, 4});
  auto all = measurements(plan, results_of(plan, amdahl(0), 0));
  for (const char* devices : {"2", "4"})
    of(all, "ddp", devices)
        .flags.push_back(std::string(mark::kFallback) + "attention (no engine) and 1 more");
  const Advice advice = advise(all, {})[0];
  EXPECT_EQ(advice.recommended, 4);
  const auto named = HasSubstr("on 2 GPUs: attention (no engine) and 1 more.");
  EXPECT_THAT(advice.notes, Contains(named));
  EXPECT_EQ(std::ranges::count_if(advice.notes,
                                  [&](const std::string& note) { return Matches(named)(note); }),
            1);
}

TEST(Advise, NamesTheBestModeAndBackendOfEachNumber) {
  Plan plan = plan_for({1, 2, 4});
  plan.request.modes = {"data_parallel", "ddp"};
  plan.request.backends = {"gloo", "local"};
  const Advice advice =
      advice_on(plan, results_of(
                          plan,
                          [](const Configuration& c) {
                            if (c.mode == "data_parallel" && c.devices == 2) return 1.01;
                            return c.backend == "local" && c.mode == "ddp" ? 1.05 : 1.1;
                          },
                          0));
  EXPECT_EQ(advice.mode, "ddp");
  EXPECT_EQ(advice.backend, "local");
  for (const Point& p : advice.points) {
    if (!p.best || p.devices == 4) continue;
    EXPECT_EQ(p.mode, p.devices == 1 ? "single" : "data_parallel");
  }
}

TEST(Advise, HasNoAnswerWithoutABaseline) {
  const Plan plan = plan_for({1, 2});
  Results results = results_of(plan, amdahl(0), 0);
  std::erase_if(results.runs, [](const BenchRun& run) { return run.configuration == 0; });
  const Advice advice = advice_on(plan, results);
  EXPECT_FALSE(advice.recommended.has_value());
  EXPECT_FALSE(advice.certain);
}

TEST(Advise, CountsTimeAndDeviceHoursFromTheSamplesToTrain) {
  const Plan plan = plan_for({1, 2});
  const auto all = measurements(plan, results_of(plan, amdahl(0), 0));
  const AdviceOptions options{.min_efficiency = 0.8, .samples_to_train = 64 * 3600};
  const auto json = to_json(advise(all, options), options);
  const auto& two = json["table"].back();
  EXPECT_NEAR(two["samples_per_s"], 128, 1e-6);
  EXPECT_NEAR(two["seconds_to_train"], 1800, 1e-6);
  EXPECT_NEAR(two["device_hours_to_train"], 1, 1e-9);
}

TEST(Advise, TellsWhenAStepWaitsForData) {
  const Plan plan = plan_for({1, 2});
  Results results = results_of(plan, amdahl(0), 0);
  for (BenchRun& run : results.runs) run.row.counters["data_wait_fraction"] = 0.4;
  EXPECT_THAT(advice_on(plan, results).notes, Contains(HasSubstr("data wait")));
}

TEST(Advise, NotesWorkBetweenStepsAbove3Percent) {
  const Plan plan = plan_for({1, 2});
  Results results = results_of(plan, amdahl(0), 0);
  for (BenchRun& run : results.runs) run.row.counters[metric::kBetweenStepsFraction] = 0.12;
  EXPECT_THAT(advice_on(plan, results).notes, Contains(HasSubstr("12 %")));
  for (BenchRun& run : results.runs) run.row.counters[metric::kBetweenStepsFraction] = 0.02;
  EXPECT_THAT(advice_on(plan, results).notes, Not(Contains(HasSubstr("between steps"))));
}

TEST(Advise, TakesNoSpeedupThatAFileLacks) {
  Summary summary = example_curve();
  summary.measurements.back().metrics["speedup"].value = std::nan("");
  const Advice advice = advise(summary.measurements, {}).at(0);
  EXPECT_EQ(advice.recommended, 2);
  EXPECT_EQ(advice.because.find("nan"), std::string::npos) << advice.because;
  for (const std::string& note : advice.notes) EXPECT_EQ(note.find("nan"), std::string::npos);
}

TEST(Advise, StaysShortWhateverTheNumbersOfAFile) {
  Summary summary = example_curve();
  for (Measurement& m : summary.measurements)
    for (auto& [name, metric] : m.metrics) metric = {1e300, metric.unit, 1e300, 1e300, 3, "rounds"};
  const std::string text = render(summary, advise(summary.measurements, {}), {}, {});
  EXPECT_LE(most_digits(text), 15) << text;
}

TEST(Advise, TakesNoOptionsFromAFileThatNobodyCouldGive) {
  for (const double samples : {1e300, 0.0, -1.0}) {
    const nlohmann::json answer = {
        {"gpus", {{"min_efficiency", 0.8}, {"samples_to_train", samples}}}};
    EXPECT_THROW(options_from_answer(answer, "x"), InputError) << samples;
  }
}

TEST(Advise, CaptionsHoldNoCommandsForATerminal) {
  Summary summary = example_curve();
  for (Measurement& m : summary.measurements) m.parameters["data"] = "\033[31mphotos";
  const std::string text = render(summary, advise(summary.measurements, {}), {}, {});
  EXPECT_EQ(text.find('\033'), std::string::npos);
  EXPECT_THAT(text, HasSubstr("?[31mphotos"));
}

TEST(Advise, AnswersEachModelAndSaysWhenTheyDiffer) {
  Plan plan = plan_for({1, 2});
  plan.request.workloads = {{"mlp", 64}, {"resnet18", 16}};
  const auto all = measurements(
      plan,
      results_of(
          plan,
          [](const Configuration& c) { return c.model == "mlp" && c.devices > 1 ? 2.0 : 1.0; }, 0));
  const auto json = to_json(advise(all, {}), {});
  EXPECT_TRUE(json["recommended"].is_null());
  EXPECT_EQ(json["cases"][0]["recommended"], 1);
  EXPECT_EQ(json["cases"][1]["recommended"], 2);
}

}  // namespace
}  // namespace howmany::reports
