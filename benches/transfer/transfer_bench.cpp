// SPDX-License-Identifier: Apache-2.0
// Measures the cost of moving data on this machine.
#include <algorithm>
#include <iostream>

#include "benches/common/context.h"
#include "benches/common/device_choice.h"
#include "benches/common/filter.h"
#include "benches/common/machine.h"
#include "benches/common/program.h"
#include "benches/common/report.h"
#include "benches/common/timing.h"
#include "benches/common/verify.h"
#include "benches/common/workload.h"
#include "benches/transfer/cases.h"
#include "core/base/budget.h"
#include "core/base/error.h"
#include "core/base/schema/metrics.h"
#include "core/gpu/gpu.h"

namespace howmany::benches {
namespace {

constexpr const char* kName = "transfer_bench";

// Returns the GPUs. Without a GPU, returns two slices of the cores, or fewer if there are not
// enough.
std::vector<Device> devices_of(const TransferFlags& flags) {
  if (!flags.device_list.empty()) return parse_devices(flags.device_list);
  std::vector<Device> devices;
  for (int i = 0; i < gpu::count(); ++i) devices.push_back({DeviceType::cuda, i});
  return devices.empty() ? devices_from("", std::min(2, cpu_device_count())) : devices;
}

void check_devices(const std::vector<Device>& devices) {
  for (const Device& device : devices) {
    HM_REQUIRE(device.type == devices[0].type,
               "--devices {},{}: give GPUs or slices of the cores, not both", devices[0].str(),
               device.str());
    const bool gpu = device.type == DeviceType::cuda;
    const int count = gpu ? gpu::count() : cpu_device_count();
    HM_REQUIRE(device.index < count, "--devices {}: there are {}{}", device.str(), count,
               gpu && count == 0 ? ": " + gpu::unavailable() : "");
  }
}

// Limits source and target together to half of the free memory.
std::string too_large(double bytes) {
  const double free = describe_memory()["available_bytes"].get<double>();
  if (4 * bytes <= free) return "";
  return fmt::format("copies of {:.1f} GB in {:.1f} GB of free memory", bytes / 1e9, free / 1e9);
}

void run_case(benchmark::State& state, const TransferCase& c, const TransferFlags& flags,
              double seconds, bool& wrong) {
  const std::string why = c.skipped.empty() ? too_large(c.bytes) : c.skipped;
  if (!why.empty()) return report_nothing(state, why);
  try {
    const Samples samples = c.measure({.budget_seconds = seconds, .max_iterations = 5000});
    const double median = quantile(samples.seconds, 0.5);
    std::map<std::string, double> counters = {{"p99_s", quantile(samples.seconds, 0.99)}};
    if (c.bytes > 0) {
      counters["bytes"] = c.bytes;
      counters[metric::kBytesPerS] = c.bytes / median;
    }
    report(state, samples, counters);
    append_samples(flags.samples,
                   {.name = c.name, .samples = samples, .flags = {}, .parameters = c.parameters});
  } catch (const LeftOut& e) {
    report_nothing(state, e.what());
  } catch (const std::exception& e) {
    wrong = wrong || dynamic_cast<const WrongData*>(&e) != nullptr;
    report_failure(state, e);
  }
}

double weight_from(const std::vector<TransferCase>& cases, size_t first) {
  double sum = 0;
  for (size_t i = first; i < cases.size(); ++i) sum += cases[i].weight;
  return sum;
}

int run(int argc, char** argv) {
  TransferFlags flags;
  std::vector<std::string> google = parse_transfer(argc, argv, flags);
  HM_REQUIRE(place_from_environment().local_rank == 0,
             "{} measures one machine from one process: start one on each host", kName);
  configure_cpu_devices({});
  flags.devices = devices_of(flags);
  check_devices(flags.devices);
  std::vector<TransferCase> cases = transfer_cases(flags);
  std::erase_if(cases, [&](const TransferCase& c) { return !selected(c.name, google); });
  if (flags.list) {
    for (const TransferCase& c : cases) std::cout << c.name << "\n";
    return 0;
  }
  bool wrong = false;
  const Budget budget(flags.budget_seconds);
  for (size_t i = 0; i < cases.size(); ++i)
    benchmark::RegisterBenchmark(cases[i].name.c_str(),
                                 [&, i](benchmark::State& state) {
                                   const double seconds =
                                       budget.share(cases[i].weight, weight_from(cases, i));
                                   run_case(state, cases[i], flags, seconds, wrong);
                                 })
        ->Iterations(1)
        ->UseManualTime()
        ->Unit(benchmark::kMicrosecond);
  add_context();
  google.insert(google.begin(), argv[0]);
  const int code = run_benchmarks(std::move(google));
  return wrong ? 1 : code;
}

}  // namespace
}  // namespace howmany::benches

int main(int argc, char** argv) {
  return howmany::benches::run_program("transfer_bench",
                                       [&] { return howmany::benches::run(argc, argv); });
}
