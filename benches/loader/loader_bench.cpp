// SPDX-License-Identifier: Apache-2.0
// Measures the rate of batches by number of loader workers, and the time of each stage. The context
// has the limits of this machine (limits.h).
//   loader/<data>/workers:N/batch:B/prefetch:P/as:threads[/ranks:R][/demand:D]
//     [/cache:cold][/to:cuda:0]
// The seconds of a row are the mean of a batch. Samples are means of consecutive batches. latency_*
// are the consumer's waits for a batch.
// A repeated case is skipped if it does not fit into --time-budget.
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "benches/common/context.h"
#include "benches/common/program.h"
#include "benches/common/report.h"
#include "benches/common/workload.h"
#include "benches/loader/flags.h"
#include "benches/loader/limits.h"
#include "benches/loader/run.h"
#include "core/base/budget.h"
#include "core/base/error.h"
#include "core/base/schema/context.h"
#include "core/base/schema/metrics.h"
#include "core/base/schema/parameters.h"
#include "core/data/formats.h"
#include "core/gpu/gpu.h"

namespace howmany::benches {
namespace {

using Flags = LoaderFlags;

struct Case {
  std::string name;
  LoaderRun run;
  std::map<std::string, std::string> parameters;
  std::string skipped;  // the reason
};

std::string why_not(Device to) {
  if (to.type == DeviceType::cpu || to.index < gpu::count()) return "";
  return gpu::count() == 0 ? gpu::unavailable() : fmt::format("there are {} GPUs", gpu::count());
}

double or_zero(const std::vector<double>& values, double q) {
  return values.empty() ? 0 : quantile(values, q);
}

std::map<std::string, double> counters_of(const LoaderResult& result, const LoaderRun& run) {
  std::map<std::string, double> counters = {{metric::kSamplesPerS, result.samples_per_s},
                                            {"latency_p50_s", or_zero(result.waits, 0.5)},
                                            {metric::kLatencyP95S, or_zero(result.waits, 0.95)},
                                            {metric::kLatencyP99S, or_zero(result.waits, 0.99)},
                                            {"latency_max_s", or_zero(result.waits, 1)},
                                            {metric::kFirstBatchS, result.first_batch_s},
                                            {"batches", static_cast<double>(result.batches)},
                                            {metric::kCpuSPerSample, result.cpu_s_per_sample}};
  if (result.bytes_per_worker >= 0) counters[metric::kBytesPerWorker] = result.bytes_per_worker;
  if (run.demand > 0) counters[metric::kStallFraction] = result.stall_fraction;
  if (result.resident_before >= 0) counters["resident_before"] = result.resident_before;
  if (result.stages.samples == 0) return counters;
  const auto n = static_cast<double>(result.stages.samples);
  counters[metric::kReadS] = result.stages.read_s / n;
  counters[metric::kDecodeS] = result.stages.decode_s / n;
  counters[metric::kTransformS] = result.stages.transform_s / n;
  return counters;
}

Case run_case(const LoaderData& data, LoaderRun run) {
  const std::string as = name_of(run.as);
  std::string name = fmt::format("loader/{}/workers:{}/batch:{}/prefetch:{}/as:{}", data.name(),
                                 run.workers, run.batch, run.prefetch, as);
  if (run.ranks > 1) name += fmt::format("/ranks:{}", run.ranks);
  if (run.demand > 0) name += fmt::format("/demand:{:.4g}", run.demand);
  if (run.cold) name += "/cache:cold";
  if (run.to != Device{}) name += "/to:" + run.to.str();
  Case c{name, run, {}, why_not(run.to)};
  c.parameters = {{parameter::kData, data.name()},
                  {parameter::kWorkers, std::to_string(run.workers)},
                  {parameter::kBatch, std::to_string(run.batch)},
                  {parameter::kPrefetch, std::to_string(run.prefetch)},
                  {parameter::kAs, as},
                  {parameter::kRanks, std::to_string(run.ranks)},
                  {"cache", run.cold ? "cold" : "warm"}};
  if (run.to != Device{}) c.parameters[parameter::kTo] = run.to.str();
  return c;
}

std::vector<LoaderRun> runs_of(const Flags& flags) {
  std::vector<LoaderRun> runs;
  for (const int workers : flags.workers)
    for (const int64_t batch : flags.batches)
      for (const int prefetch : flags.prefetch)
        for (const Device to : flags.to) {
          LoaderRun run = flags.run;
          run.workers = workers;
          run.batch = batch;
          run.prefetch = prefetch;
          run.to = to;
          run.cold = flags.cache == "cold";
          runs.push_back(run);
        }
  return runs;
}

std::vector<Case> run_cases(const LoaderData& data, const Flags& flags) {
  std::vector<Case> cases;
  for (const LoaderRun& run : runs_of(flags)) cases.push_back(run_case(data, run));
  return cases;
}

struct Turns {
  const Budget budget;
  std::map<std::string, double> seconds = {};  // of the last turn, by case
};

void measure(benchmark::State& state, const LoaderData& data, const Case& c,
             const std::string& samples, Turns& turns) {
  if (!c.skipped.empty()) return report_nothing(state, c.skipped);
  double& seconds = turns.seconds[c.name];
  if (seconds > 0 && !turns.budget.fits(seconds))
    return report_nothing(state, "the time budget is spent");
  const double begin = turns.budget.elapsed();
  try {
    const LoaderResult result = run_loader(data, c.run);
    report(state, result.blocks, counters_of(result, c.run));
    SampleLine line;
    line.name = c.name;
    line.samples = result.blocks;
    line.parameters = c.parameters;
    append_samples(samples, line);
  } catch (const std::exception& e) {
    report_failure(state, e);
  }
  seconds = turns.budget.elapsed() - begin;
}

std::map<std::string, std::string> context(const LoaderData& data) {
  std::map<std::string, std::string> all = {
      {"loader_data", data.samples().describe()},
      {context::kLoaderSampleBytes, std::to_string(data.sample_bytes())},
      {context::kLoaderLimits, describe_loader_limits().dump()}};
  if (data.format().empty()) return all;
  all[context::kLoaderFormat] = data.format();
  if (!data.notes().empty())
    all[context::kLoaderNotes] = fmt::format("{}", fmt::join(data.notes(), "; "));
  all[context::kLoaderFiles] = std::to_string(data.listed());
  all[context::kLoaderFilesUsed] = std::to_string(data.samples().size());
  all[context::kLoaderFilesBad] = std::to_string(data.bad().size());
  if (!data.bad().empty())
    all[context::kLoaderFirstBad] = data.bad()[0].path + ": " + data.bad()[0].why;
  return all;
}

int run(int argc, char** argv) {
  Flags flags;
  std::vector<std::string> words = parse_loader(argc, argv, flags);
  words.insert(words.begin(), argv[0]);
  Turns turns{Budget(flags.time_budget)};
  const LoaderData data(flags.data);
  HM_REQUIRE(flags.cache == "warm" || !data.parts().empty(), "--cache cold: {} is in no file",
             flags.data.data);
  const std::vector<Case> cases = run_cases(data, flags);
  for (const Case& c : cases)
    benchmark::RegisterBenchmark(
        c.name.c_str(),
        [&](benchmark::State& state) { measure(state, data, c, flags.samples, turns); })
        ->Iterations(1)
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
  add_context(context(data));
  return run_benchmarks(std::move(words));
}

}  // namespace
}  // namespace howmany::benches

int main(int argc, char** argv) {
  using namespace howmany::benches;
  return run_program("loader_bench", [&] { return run(argc, argv); });
}
