// SPDX-License-Identifier: Apache-2.0
// Command line of transfer_bench.
#include <CLI/CLI.hpp>

#include "benches/common/program.h"
#include "benches/common/workload.h"
#include "benches/transfer/cases.h"
#include "core/base/cli/number_check.h"
#include "core/base/cli/option.h"
#include "core/base/schema/flags.h"

namespace howmany::benches {
namespace {

constexpr const char* kTransferExamples = R"(Examples:
  transfer_bench                                      copies by size, with one thread and with all
  transfer_bench --devices cuda:0                     also to and from that GPU
  transfer_bench --model resnet18 --batch-per-device 16          also what one training step moves
Flags of Google Benchmark (--benchmark_...) work as usual.
Exit codes: 0 measured, 1 wrong data, 2 bad usage or input, 3 a measurement failed.)";

void add_transfer_flags(CLI::App& app, TransferFlags& flags) {
  add_option(app, flag::kMinBytes, flags.min_bytes)->check(whole_between(1, int64_t{1} << 40));
  add_option(app, flag::kMaxBytes, flags.max_bytes)->check(whole_between(1, int64_t{1} << 40));
  add_option(app, flag::kDevices, flags.device_list, "the GPUs, else cpu:0,cpu:1");
  add_option(app, flag::kModel, flags.models);
  add_option(app, flag::kBatchPerDevice, flags.batch, "by model")
      ->check(whole_between(1, kMaxBatch));
  add_option(app, flag::kTimeBudget, flags.budget_seconds)->check(above_zero());
  add_option(app, flag::kSamplesFile, flags.samples)->envname("HOWMANY_SAMPLES");
  add_switch(app, flag::kList, flags.list);
}

}  // namespace

std::vector<std::string> parse_transfer(int argc, char** argv, TransferFlags& flags) {
  CLI::App app("Times copies between the memories of this machine.", "transfer_bench");
  app.footer(kTransferExamples);
  add_transfer_flags(app, flags);
  return parse(app, argc, argv);
}

}  // namespace howmany::benches
