// SPDX-License-Identifier: Apache-2.0
#include "benches/loader/flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>

#include "benches/common/program.h"
#include "benches/common/workload.h"
#include "core/base/cli/number_check.h"
#include "core/base/cli/option.h"
#include "core/base/schema/flags.h"
#include "core/data/formats.h"

namespace howmany::benches {
namespace {

constexpr const char* kLoaderExamples =
    "Examples:\n"
    "  loader_bench --data photos --workers 0,1,2,4\n"
    "  loader_bench --data photos --workers 2,3,4,4,3,2          # rounds, there and back\n"
    "  loader_bench --data photos --workers 2 --samples-per-second 900   # how long does it "
    "stall?";

const std::map<std::string, WorkersAs> kWorkerTypes = {{"threads", WorkersAs::threads},
                                                       {"processes", WorkersAs::processes}};

void add_loader_flags(CLI::App& app, LoaderFlags& flags) {
  const auto set_to = [&](const std::string& list) { flags.to = parse_devices(list); };
  add_option(app, flag::kData, flags.data.data);
  add_option(app, flag::kWorkers, flags.workers, "0,1,2")
      ->delimiter(',')
      ->check(whole_between(0, 1024));
  add_option(app, flag::kBatchPerDevice, flags.batches, "64")
      ->delimiter(',')
      ->check(whole_between(1, 1 << 20));
  add_option(app, flag::kPrefetch, flags.prefetch, "2")
      ->delimiter(',')
      ->check(whole_between(1, 1024));
  add_option(app, flag::kRanks, flags.run.ranks)->check(whole_between(1, 1024));
  add_option(app, flag::kSamplesPerSecond, flags.run.demand, "no limit")->check(at_least_zero());
  add_option(app, flag::kWorkerType, flags.run.as, "threads")->transform(one_of(kWorkerTypes));
  add_option_function<std::string>(app, flag::kTo, set_to, "cpu:0");
  add_option(app, flag::kImageSize, flags.data.size)->check(whole_between(1, 8192));
  add_option(app, flag::kSequence, flags.data.sequence)->check(whole_between(1, 1 << 24));
  add_option(app, flag::kImages, flags.data.images)->check(whole_between(1, 100'000));
  add_option(app, flag::kWidth, flags.data.width)->check(whole_between(8, 20'000));
  add_option(app, flag::kHeight, flags.data.height)->check(whole_between(8, 20'000));
  add_option(app, flag::kCache, flags.cache)->check(CLI::IsMember({"warm", "cold"}));
  add_option(app, flag::kCaseBudget, flags.run.budget_s)->check(above_zero());
  add_option(app, flag::kTimeBudget, flags.time_budget, "no limit")->check(above_zero());
  add_option(app, flag::kSeed, flags.run.seed)->check(whole_between(0, kMaxSeed));
  add_option(app, flag::kSamplesFile, flags.samples);
}

}  // namespace

std::string name_of(WorkersAs as) {
  return std::ranges::find(kWorkerTypes, as, &decltype(kWorkerTypes)::value_type::second)->first;
}

std::vector<std::string> parse_loader(int argc, char** argv, LoaderFlags& flags) {
  CLI::App app("Times how fast batches come, by the number of loader workers.", "loader_bench");
  add_loader_flags(app, flags);
  app.footer("Data: synthetic (JPEGs), null, cost:MICROSECONDS, wait:MICROSECONDS, or files: " +
             data_formats_help() + "\n\n" + kLoaderExamples);
  return parse(app, argc, argv);
}

}  // namespace howmany::benches
