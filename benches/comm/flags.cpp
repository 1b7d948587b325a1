// SPDX-License-Identifier: Apache-2.0
// Command line of backend_bench.
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>

#include "benches/comm/cases.h"
#include "benches/comm/collectives.h"
#include "benches/common/program.h"
#include "core/base/cli/number_check.h"
#include "core/base/cli/option.h"
#include "core/base/error.h"
#include "core/base/schema/flags.h"

namespace howmany::benches {
namespace {

constexpr const char* kBackendExamples = R"(Examples:
  backend_bench --backend local --ops all_reduce --max-bytes 1048576
  backend_bench --backend gloo --devices cpu:0,cpu:1 --time-budget 20 --benchmark_out=backend.json
  backend_bench --backend gloo --model resnet18       also the model's own gradient buckets
  torchrun --nproc-per-node 2 --no-python backend_bench --backend gloo
  mpirun -n 2 backend_bench --backend gloo,mpi
Flags of Google Benchmark (--benchmark_...) work as usual.
Exit codes: 0 measured, 1 wrong data, 2 bad usage or input, 3 a measurement failed.)";

void add_backend_flags(CLI::App& app, BackendFlags& flags) {
  add_option(app, flag::kOps, flags.ops, "all")->delimiter(',');
  add_option(app, flag::kBackend, flags.backends, "all")->delimiter(',');
  add_option(app, flag::kDevices, flags.devices,
             "one for each rank of the launcher, else cpu:0,cpu:1");
  add_option(app, flag::kDeviceCount, flags.counts, "all")->delimiter(',')->check(above_zero());
  add_option(app, flag::kDtype, flags.dtypes, "f32")->delimiter(',');
  add_option(app, flag::kMinBytes, flags.min_bytes, "4")->check(whole_between(1, int64_t{1} << 40));
  add_option(app, flag::kMaxBytes, flags.max_bytes, "1 GiB, or less if memory or time is short")
      ->check(whole_between(1, int64_t{1} << 40));
  add_option(app, flag::kSizeFactor, flags.factor)->check(whole_between(2, 1024));
  add_option(app, flag::kModel, flags.models);
  add_option(app, flag::kTimeBudget, flags.budget_seconds)->check(above_zero());
  add_option(app, flag::kSamplesFile, flags.samples)->envname("HOWMANY_SAMPLES");
  add_switch(app, flag::kList, flags.list);
  add_option(app, flag::kTimeout, flags.work.timeout_seconds)->check(between(0.1, 86'400));
  add_option(app, flag::kCoresPerDevice, flags.work.cores_per_device)->check(above_zero());
  add_switch(app, flag::kOversubscribe, flags.work.oversubscribe);
}

}  // namespace

std::vector<std::string> parse_backend(int argc, char** argv, BackendFlags& flags) {
  CLI::App app("Times collectives over communication backends, by size.", "backend_bench");
  app.footer(fmt::format("Operations: {}, {}\n\n{}", fmt::join(collective_names(), ", "), kOverlap,
                         kBackendExamples));
  add_backend_flags(app, flags);
  std::vector<std::string> google = parse(app, argc, argv);
  HM_REQUIRE(flags.min_bytes <= flags.max_bytes, "--min-bytes {} is above --max-bytes {}",
             flags.min_bytes, flags.max_bytes);
  return google;
}

}  // namespace howmany::benches
