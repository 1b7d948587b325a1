#include "benches/transfer/flags.h"

#include <CLI/CLI.hpp>

#include "benches/common/program.h"
#include "benches/common/workload.h"
#include "core/base/cli/number_check.h"
#include "core/base/schema/flags.h"

namespace howmany::benches {
namespace {

constexpr const char* kTransferExamples = R"(Examples:
  transfer_bench                                      copies by size, with one thread and with all
  transfer_bench --ceilings                           only what limits communication here
  transfer_bench --devices cuda:0                     also to and from that GPU
  transfer_bench --model resnet18 --batch 16          also what one training step moves
Flags of Google Benchmark (--benchmark_...) work as usual.
Exit codes: 0 measured, 1 wrong data, 2 bad usage or input, 3 a measurement failed.)";

void add_transfer_flags(CLI::App& app, TransferBenchFlags& flags) {
  app.add_option(flag::kMinBytes, flags.min_bytes)->check(CLI::Range(1L, 1L << 40));
  app.add_option(flag::kMaxBytes, flags.max_bytes)->check(CLI::Range(1L, 1L << 40));
  app.add_option(flag::kDevices, flags.device_list,
                 "to copy to and from [the GPUs here, else cpu:0,cpu:1]");
  app.add_option(flag::kModel, flags.models, "also what a training step of it moves");
  app.add_option(flag::kBatch, flags.batch, "of that step [by model]")
      ->check(CLI::Range(int64_t{1}, kMostBatch));
  app.add_option(flag::kBudgetSeconds, flags.budget_seconds, "of timed copies in all")
      ->check(above_zero())
      ->capture_default_str();
  app.add_option(flag::kSamples, flags.samples, "append every timed copy to this file")
      ->envname("HOWMANY_SAMPLES");
  app.add_flag(flag::kCeilings, flags.ceilings, "only what limits communication on this machine");
  app.add_flag(flag::kList, flags.list, "names of the cases, one a line");
}

}  // namespace

std::vector<std::string> parse_transfer(int argc, char** argv, TransferBenchFlags& flags) {
  CLI::App app("Times copies between the memories of this machine.", "transfer_bench");
  app.footer(kTransferExamples);
  add_transfer_flags(app, flags);
  return parse(app, argc, argv);
}

}  // namespace howmany::benches
