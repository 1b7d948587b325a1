#include "benches/comm/flags.h"

#include <fmt/ranges.h>

#include <CLI/CLI.hpp>

#include "benches/comm/collectives.h"
#include "benches/common/program.h"
#include "core/base/cli/number_check.h"
#include "core/base/error.h"
#include "core/base/schema/flags.h"

namespace howmany::benches {
namespace {

constexpr const char* kBackendExamples = R"(Examples:
  backend_bench --backend local --ops all_reduce --max-bytes 1048576
  backend_bench --backend gloo --devices cpu:0,cpu:1 --budget-seconds 20 --benchmark_out=backend.json
  backend_bench --backend gloo --model resnet18       also the model's own gradient buckets
  torchrun --nproc-per-node 2 --no-python backend_bench --backend gloo
  mpirun -n 2 backend_bench --backend gloo,mpi
Flags of Google Benchmark (--benchmark_...) work as usual.
Exit codes: 0 measured, 1 wrong data, 2 bad usage or input, 3 a measurement failed.)";

void add_backend_flags(CLI::App& app, BackendFlags& flags) {
  app.add_option(flag::kOps, flags.ops,
                 "of " + fmt::format("{}", fmt::join(collective_names(), ", ")) +
                     " [all that are not in place]")
      ->delimiter(',');
  app.add_option(flag::kBackend, flags.backends, "[all]; local: threads of one process")
      ->delimiter(',');
  app.add_option(flag::kDevices, flags.devices,
                 "cpu:0,cpu:1 or cpu:0-3, one for each rank, of all or of those on each host");
  app.add_option(flag::kDeviceCount, flags.counts, "measure on the first n of the devices, each n")
      ->delimiter(',')
      ->check(above_zero());
  app.add_option(flag::kDtype, flags.dtypes, "f32,f64,i32,i64,u8,bf16: one or several [f32]")
      ->delimiter(',');
  app.add_flag(flag::kInPlace, flags.in_place,
               "also all_gather, reduce_scatter, reduce, gather and scatter within one buffer");
  app.add_option(flag::kMinBytes, flags.min_bytes, "[4]")->check(CLI::Range(1L, 1L << 40));
  app.add_option(flag::kMaxBytes, flags.max_bytes, "as far as memory and time allow [1 GiB]")
      ->check(CLI::Range(1L, 1L << 40));
  app.add_option(flag::kSizeFactor, flags.factor, "from one size to the next")
      ->check(CLI::Range(2L, 1024L));
  app.add_option(flag::kModel, flags.models, "also all_reduce of its gradient buckets");
  app.add_option(flag::kBudgetSeconds, flags.budget_seconds, "wall clock for all cases")
      ->check(above_zero())
      ->capture_default_str();
  app.add_option(
         flag::kLeastCalls, flags.least_calls,
         "timed calls of a case, however long one takes, but one where else a case would be "
         "left out; below 7 without an interval")
      ->check(CLI::Range(1, 5000))
      ->capture_default_str();
  app.add_option(flag::kSamples, flags.samples, "append every timed call to this file")
      ->envname("HOWMANY_SAMPLES");
  app.add_flag("--no-overlap", flags.no_overlap, "leave out the all_reduce beside matrix products");
  app.add_flag(flag::kList, flags.list, "names of the cases, one a line");
  app.add_option(flag::kTimeout, flags.work.timeout_seconds, "seconds a rank waits for the others")
      ->check(between(0.1, 86'400));
  app.add_option(flag::kCoresPerDevice, flags.work.cores_per_device)->check(above_zero());
  app.add_flag(flag::kOversubscribe, flags.work.oversubscribe,
               "allow devices that share cores, and ranks that share a GPU");
}

}  // namespace

std::vector<std::string> parse_backend(int argc, char** argv, BackendFlags& flags) {
  CLI::App app("Times collectives over communication backends, by size.", "backend_bench");
  app.footer(kBackendExamples);
  add_backend_flags(app, flags);
  std::vector<std::string> google = parse(app, argc, argv);
  HM_REQUIRE(flags.min_bytes <= flags.max_bytes, "--min-bytes {} is above --max-bytes {}",
             flags.min_bytes, flags.max_bytes);
  return google;
}

}  // namespace howmany::benches
