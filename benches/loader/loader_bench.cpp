// SPDX-License-Identifier: Apache-2.0
// Measures the rate of batches by number of loader workers, and the time of each stage.
//   loader/<data>/workers:N/batch:B/prefetch:P/as:threads[/ranks:R][/demand:D]
//     [/order:any][/cache:cold][/to:cuda:0]
//   loader/probe/{solo,worker,handover,collate,read,cores}/...   with --probe, instead
// The seconds of a row are the mean of a batch. Samples are means of consecutive batches; for solo
// they are single batches. latency_* are the consumer's waits for a batch.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>

#include "benches/common/context.h"
#include "benches/common/program.h"
#include "benches/common/report.h"
#include "benches/common/workload.h"
#include "benches/loader/flags.h"
#include "benches/loader/limits.h"
#include "benches/loader/probes.h"
#include "benches/loader/run.h"
#include "core/base/error.h"
#include "core/base/schema/context.h"
#include "core/base/schema/metrics.h"
#include "core/base/schema/parameters.h"
#include "core/data/formats.h"
#include "core/gpu/gpu.h"
#include "core/host/cpu_limits.h"

namespace howmany::benches {
namespace {

using Flags = LoaderFlags;

struct Case {
  std::string name;
  std::function<Probed()> measure;
  std::map<std::string, std::string> parameters = {};
  std::string skipped = {};  // the reason
};

std::string why_not(Device to) {
  if (to.type == DeviceType::cpu || to.index < gpu::count()) return "";
  return gpu::count() == 0 ? gpu::unavailable() : fmt::format("there are {} GPUs", gpu::count());
}

double or_zero(const std::vector<double>& values, double q) {
  return values.empty() ? 0 : quantile(values, q);
}

Probed as_probed(const LoaderResult& result, const LoaderRun& run) {
  Probed probed;
  probed.samples = result.blocks;
  const double half = relative_half_width(result.blocks.seconds);
  probed.counters = {{metric::kSamplesPerS, result.samples_per_s},
                     {"latency_p50_s", or_zero(result.waits, 0.5)},
                     {metric::kLatencyP95S, or_zero(result.waits, 0.95)},
                     {metric::kLatencyP99S, or_zero(result.waits, 0.99)},
                     {"latency_max_s", or_zero(result.waits, 1)},
                     {metric::kFirstBatchS, result.first_batch_s},
                     {"batches", static_cast<double>(result.batches)},
                     {metric::kCpuSPerSample, result.cpu_s_per_sample}};
  if (result.bytes_per_worker >= 0)
    probed.counters[metric::kBytesPerWorker] = result.bytes_per_worker;
  if (half < 1) probed.counters["samples_per_s_half_width"] = half * result.samples_per_s;
  if (run.demand > 0) {
    probed.counters[metric::kStallFraction] = result.stall_fraction;
    if (std::isfinite(result.stall_half_width))
      probed.counters["stall_fraction_half_width"] = result.stall_half_width;
  }
  if (result.resident_before >= 0) probed.counters["resident_before"] = result.resident_before;
  if (result.stages.samples == 0) return probed;
  const auto n = static_cast<double>(result.stages.samples);
  probed.counters[metric::kReadS] = result.stages.read_s / n;
  probed.counters[metric::kDecodeS] = result.stages.decode_s / n;
  probed.counters[metric::kTransformS] = result.stages.transform_s / n;
  return probed;
}

Case run_case(const LoaderData& data, LoaderRun run) {
  const std::string as = name_of(run.as);
  std::string name = fmt::format("loader/{}/workers:{}/batch:{}/prefetch:{}/as:{}", data.name(),
                                 run.workers, run.batch, run.prefetch, as);
  if (run.ranks > 1) name += fmt::format("/ranks:{}", run.ranks);
  if (run.demand > 0) name += fmt::format("/demand:{:.4g}", run.demand);
  if (!run.in_order) name += "/order:any";
  if (run.cold) name += "/cache:cold";
  if (run.to != Device{}) name += "/to:" + run.to.str();
  Case c{name, [&data, run] { return as_probed(run_loader(data, run), run); }};
  c.parameters = {{parameter::kData, data.name()},
                  {parameter::kWorkers, std::to_string(run.workers)},
                  {parameter::kBatch, std::to_string(run.batch)},
                  {parameter::kPrefetch, std::to_string(run.prefetch)},
                  {parameter::kAs, as},
                  {parameter::kRanks, std::to_string(run.ranks)},
                  {"cache", run.cold ? "cold" : "warm"}};
  if (run.to != Device{}) c.parameters[parameter::kTo] = run.to.str();
  c.skipped = why_not(run.to);
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
          run.in_order = !flags.any_order;
          runs.push_back(run);
        }
  return runs;
}

std::vector<Case> run_cases(const LoaderData& data, const Flags& flags) {
  std::vector<Case> cases;
  for (const LoaderRun& run : runs_of(flags)) cases.push_back(run_case(data, run));
  return cases;
}

std::vector<Case> probe_cases(const LoaderData& data, const Flags& flags) {
  const int64_t batch = flags.batches.front();
  const double budget = flags.run.budget_s;
  const int cores = cpu_limits().usable;
  std::vector<Case> cases = {
      {fmt::format("loader/probe/solo/batch:{}", batch),
       [&data, batch, budget] { return probe_solo(data, batch, budget); }},
      {fmt::format("loader/probe/handover/workers:1/batch:{}", batch),
       [&data, batch, budget, as = flags.run.as] {
         return probe_handover(data, batch, 1, as, budget / 4);
       }},
      {fmt::format("loader/probe/collate/batch:{}", batch),
       [&data, batch, budget] { return probe_collate(data, batch, budget / 4); }},
      {fmt::format("loader/probe/cores/threads:{}", cores),
       [cores, budget] { return probe_cores(cores, budget / 2); }}};
  if (flags.run.as != WorkersAs::threads)
    cases.push_back(
        {fmt::format("loader/probe/worker/as:{}/batch:{}", name_of(flags.run.as), batch),
         [&data, batch, budget, as = flags.run.as] {
           return probe_worker(data, batch, as, budget);
         }});
  if (!data.a_file_each()) return cases;
  for (const bool cold : {false, true})
    for (const int threads : std::set<int>{1, 2, 4, 8})
      cases.push_back(
          {fmt::format("loader/probe/read/threads:{}/cache:{}", threads, cold ? "cold" : "warm"),
           [&data, threads, cold, budget] {
             return probe_read(data, threads, cold, budget / (cold ? 2 : 8));
           }});
  return cases;
}

void run_case(benchmark::State& state, const Case& c, const std::string& samples) {
  if (!c.skipped.empty()) return report_nothing(state, c.skipped);
  try {
    const Probed probed = c.measure();
    report(state, probed.samples, probed.counters);
    SampleLine line;
    line.name = c.name;
    line.samples = probed.samples;
    line.parameters = c.parameters;
    append_samples(samples, line);
  } catch (const std::exception& e) {
    report_failure(state, e);
  }
}

std::map<std::string, std::string> context(const LoaderData& data) {
  std::map<std::string, std::string> all = {
      {"loader_data", data.samples().describe()},
      {"loader_sample_bytes", std::to_string(data.sample_bytes())}};
  if (!data.format().empty()) all[context::kLoaderFormat] = data.format();
  if (!data.a_file_each()) return all;
  all[context::kLoaderFiles] = std::to_string(data.listed());
  all[context::kLoaderFilesUsed] = std::to_string(data.files().size());
  all[context::kLoaderFilesBad] = std::to_string(data.bad().size());
  if (!data.bad().empty())
    all[context::kLoaderFirstBad] = data.bad()[0].path + ": " + data.bad()[0].why;
  return all;
}

int run(int argc, char** argv) {
  Flags flags;
  std::vector<std::string> words = parse_loader(argc, argv, flags);
  if (flags.limits) {
    std::cout << describe_loader_limits().dump(2) << "\n";
    return 0;
  }
  words.insert(words.begin(), argv[0]);
  const LoaderData data(flags.data);
  HM_REQUIRE(flags.cache == "warm" || !data.files().empty(), "--cache cold: {} is in no file",
             flags.data.data);
  HM_REQUIRE(!flags.any_order || flags.run.ranks == 1, "--any-order is for one rank, not {}",
             flags.run.ranks);
  const std::vector<Case> cases = flags.probe ? probe_cases(data, flags) : run_cases(data, flags);
  for (const Case& c : cases)
    benchmark::RegisterBenchmark(
        c.name.c_str(), [&](benchmark::State& state) { run_case(state, c, flags.samples); })
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
