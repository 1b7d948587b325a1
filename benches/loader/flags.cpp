#include "benches/loader/flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>

#include "benches/common/program.h"
#include "benches/common/workload.h"
#include "core/base/cli/number_check.h"
#include "core/base/schema/flags.h"
#include "core/data/formats.h"

namespace howmany::benches {
namespace {

constexpr const char* kLoaderExamples =
    "Examples:\n"
    "  loader_bench --data photos --workers 0,1,2,4\n"
    "  loader_bench --data photos --workers 2,3,4 --in-turn --budget-seconds 10\n"
    "  loader_bench --data photos --workers 2 --samples-per-second 900   # how long does it "
    "stall?\n"
    "  loader_bench --data synthetic --probe";

const std::map<std::string, WorkersAs> kKinds = {{"threads", WorkersAs::threads},
                                                 {"processes", WorkersAs::processes},
                                                 {"pytorch", WorkersAs::pytorch}};

void add_loader_flags(CLI::App& app, LoaderFlags& flags) {
  app.add_option(flag::kData, flags.data.data,
                 "synthetic: painted JPEGs; null; cost:MICROSECONDS; wait:MICROSECONDS; " +
                     data_formats_help())
      ->capture_default_str();
  app.add_option(flag::kWorkers, flags.workers, "numbers of workers of each rank")
      ->delimiter(',')
      ->check(CLI::Range(0, 1024));
  app.add_option(flag::kBatch, flags.batches, "samples in a batch of each rank")
      ->delimiter(',')
      ->check(CLI::Range(1, 1 << 20));
  app.add_option(flag::kPrefetch, flags.prefetch, "batches kept ready for each worker")
      ->delimiter(',')
      ->check(CLI::Range(1, 1024));
  app.add_option(flag::kRanks, flags.run.ranks, "loaders at once, each with its consumer")
      ->check(CLI::Range(1, 1024));
  app.add_option(flag::kSamplesPerSecond, flags.run.demand, "what training takes, each rank")
      ->check(at_least_zero());
  app.add_option(flag::kAs, flags.run.as,
                 "workers are threads, processes, or what PyTorch's DataLoader does (pytorch)")
      ->transform(CLI::CheckedTransformer(kKinds));
  app.add_flag("--pin-memory", flags.run.pin_memory, "page-locked batches, for a GPU");
  app.add_option_function<std::string>(
      flag::kTo, [&](const std::string& list) { flags.to = parse_devices(list); },
      "devices that the batches are for, cpu:0 or cpu:0,cuda:0 (each a case)");
  add_decode(app, flags.run.decode);
  app.add_flag("--any-order", flags.any_order, "take batches as they are finished (one rank)");
  app.add_option(flag::kTimeout, flags.run.timeout_s, "seconds after which a batch counts as hung")
      ->check(at_least_zero());
  app.add_option(flag::kImageSize, flags.data.size, "samples are this many pixels wide and high")
      ->check(CLI::Range(1, 8192));
  app.add_option("--sequence", flags.data.sequence, "tokens of a sample, for files of tokens")
      ->check(CLI::Range(1, 1 << 24));
  app.add_option("--most-files", flags.data.most, "files of the folder that are used")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--images", flags.data.images, "JPEGs painted for --data synthetic")
      ->check(CLI::Range(1, 100'000));
  app.add_option("--width", flags.data.width, "of a painted JPEG")->check(CLI::Range(8, 20'000));
  app.add_option("--height", flags.data.height, "of a painted JPEG")->check(CLI::Range(8, 20'000));
  app.add_option(flag::kCache, flags.cache, "warm, or cold: pages dropped, every file read once")
      ->check(CLI::IsMember({"warm", "cold"}));
  app.add_flag(
      flag::kInTurn, flags.in_turn,
      "loaders side by side, a tenth of a second of each in turn: for a machine whose speed "
      "changes");
  app.add_option(flag::kBudgetSeconds, flags.run.budget_s,
                 "of timed batches, each case; with --in-turn of everything a case needs")
      ->check(above_zero())
      ->capture_default_str();
  app.add_option(flag::kSeed, flags.run.seed, "of the order");
  app.add_option(flag::kSamples, flags.samples, "append every sample to this file, a line each");
  app.add_option(flag::kMoreUs, flags.run.more_us,
                 "microseconds of arithmetic added to each sample: what Python takes longer")
      ->check(CLI::Range(0, 60'000'000));
  app.add_option(flag::kMoreAloneUs, flags.run.more_alone_us,
                 "the same where there are no workers [--more-us]")
      ->check(CLI::Range(0, 60'000'000));
  app.add_option(flag::kMoreCrowdedUs, flags.run.more_crowded_us,
                 "the same where there are as many workers as --crowded, growing from half as many")
      ->check(CLI::Range(0, 60'000'000));
  app.add_option(flag::kCrowded, flags.run.crowded, "workers of --more-crowded-us, of all ranks")
      ->check(CLI::Range(2, 1 << 20));
  app.add_option(flag::kWorkerStart, flags.run.start_s,
                 "seconds of arithmetic before a worker's first batch: what Python imports")
      ->check(between(0, 600));
  app.add_flag(flag::kProbe, flags.probe, "the short probes behind `howmany workers` instead");
  app.add_flag(flag::kLimits, flags.limits, "only what bounds the number of workers, as JSON");
  app.footer(kLoaderExamples);
}

}  // namespace

std::string name_of(WorkersAs as) {
  return std::ranges::find(kKinds, as, &decltype(kKinds)::value_type::second)->first;
}

std::vector<std::string> parse_loader(int argc, char** argv, LoaderFlags& flags) {
  CLI::App app("Times how fast batches come, by the number of loader workers.", "loader_bench");
  add_loader_flags(app, flags);
  return parse(app, argc, argv);
}

}  // namespace howmany::benches
