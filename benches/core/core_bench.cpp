// SPDX-License-Identifier: Apache-2.0
// Compares operations and whole training steps with their lower bound: FLOP divided by the
// machine's own GEMM rate, or bytes divided by its copy rate. Both rates are measured first, on the
// same cores or GPU. A convolution counts the multiplications of its direct form, so a Winograd
// convolution may exceed 1.
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <set>
#include <thread>

#include "benches/common/context.h"
#include "benches/common/program.h"
#include "benches/common/report.h"
#include "benches/common/timing.h"
#include "benches/core/cases.h"
#include "benches/core/flags.h"
#include "core/backends/selection.h"
#include "core/base/error.h"
#include "core/base/schema/metrics.h"
#include "core/gpu/event.h"
#include "core/gpu/gpu.h"
#include "core/host/copy.h"
#include "core/ops/ops.h"
#include "core/tensor/device.h"
#include "core/tensor/precision.h"
#include "core/tensor/rng.h"

namespace howmany::benches {
namespace {

using Options = CoreFlags;

double seconds_of(const std::function<void()>& body) {
  const auto begin = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double best_seconds(int repeats, const std::function<void()>& body) {
  double best = std::numeric_limits<double>::max();
  for (int i = 0; i < repeats; ++i) best = std::min(best, seconds_of(body));
  return best;
}

struct Rates {
  double gemm_flop_per_s = 0, copy_bytes_per_s = 0;
};

void keep_best(Rates& rates, double flop, double seconds) {
  rates.gemm_flop_per_s = std::max(rates.gemm_flop_per_s, flop / seconds);
}
double flop_of(int64_t n) { return 2 * static_cast<double>(n * n) * static_cast<double>(n); }

// Returns the best rates of square products in the thread's precision, and of a copy much larger
// than the caches (bytes read plus written).
Rates measure_cpu(int threads) {
  Rates rates;
  for (const int64_t n : {1024, 2048}) {
    const Tensor a = Tensor::full({n, n}, 0.5), b = Tensor::full({n, n}, 0.25);
    keep_best(rates, flop_of(n), best_seconds(8, [&] { ops::matmul(a, b); }));
  }
  constexpr size_t kBytes = size_t{256} << 20;
  std::vector<char> from(kBytes, 1), to(kBytes);
  const size_t part = kBytes / static_cast<size_t>(threads);
  const double best = best_seconds(5, [&] {
    std::vector<std::jthread> team;
    for (size_t at = 0; at + part <= kBytes; at += part)
      team.emplace_back([&, at] { copy_host(to.data() + at, from.data() + at, part); });
  });
  rates.copy_bytes_per_s = 2 * static_cast<double>(kBytes) / best;
  return rates;
}

// Returns the seconds of one call, by the GPU's clock over `together` consecutive calls.
double seconds_on_gpu(int gpu, int together, const std::function<void()>& body) {
  const gpu::TimedEvent begin(gpu);
  for (int i = 0; i < together; ++i) body();
  return gpu::TimedEvent(gpu).seconds_since(begin) / together;
}

// As measure_cpu(), on a GPU, with products as layers call them. The values are random, because the
// clock rate of a GPU depends on its operands.
Rates measure_gpu(Device device) {
  Rates rates;
  constexpr int kTimes = 8, kTogether = 5;
  const auto best = [&](const std::function<void()>& body) {
    double least = std::numeric_limits<double>::max();
    body();
    for (int i = 0; i < kTimes; ++i)
      least = std::min(least, seconds_on_gpu(device.index, kTogether, body));
    return least;
  };
  for (const int64_t n : {4096, 8192}) {
    Tensor drawn = Tensor::empty({n, n});
    fill_normal(drawn, 0, 1, Rng(1));
    const Tensor w = drawn.to(device), x = ops::stored(w);
    keep_best(rates, flop_of(n), best([&] { ops::linear(x, w, {}, Activation::none); }));
  }
  constexpr int64_t kBytes = int64_t{1} << 30;
  const Tensor from = Tensor::zeros({kBytes}, Dtype::u8, device);
  Tensor to = Tensor::zeros({kBytes}, Dtype::u8, device);
  rates.copy_bytes_per_s = 2 * static_cast<double>(kBytes) / best([&] { to.copy_from(from); });
  return rates;
}

std::map<std::string, double> counters(const CoreCase& c, const Rates& rates, double median) {
  std::map<std::string, double> values;
  double floor = 0;
  if (c.flop > 0) {
    values[metric::kFlopPerS] = c.flop / median;
    floor = c.flop / rates.gemm_flop_per_s;
  }
  if (c.bytes > 0) {
    values[metric::kBytesPerS] = c.bytes / median;
    floor = std::max(floor, c.bytes / rates.copy_bytes_per_s);
  }
  if (c.samples > 0) values[metric::kSamplesPerS] = c.samples / median;
  if (c.parameters > 0) values["parameters"] = c.parameters;
  values["of_floor"] = floor / median;
  return values;
}

// Short GPU work is submitted several times per sample, so that the host stays ahead of the GPU.
Samples time_case(Comm& alone, const TimingOptions& options, Device device,
                  const std::function<void()>& body) {
  if (device.type == DeviceType::cpu) return time_iterations(alone, options, body);
  constexpr double kLeast = 1e-3;
  const double once = seconds_on_gpu(device.index, 10, body);
  const int together = std::clamp(static_cast<int>(std::ceil(kLeast / once)), 1, 1000);
  Samples samples = time_on_gpu(alone, options, device.index, [&] {
    for (int i = 0; i < together; ++i) body();
  });
  for (double& seconds : samples.seconds) seconds /= together;
  return samples;
}

// One case on one set of cores or one GPU.
struct Run {
  CoreCase what;
  Device device;
  int threads = 1;  // of a CPU device
  Rates rates;
  Options options;

  std::string name() const {
    if (device.type == DeviceType::cuda)
      return fmt::format("core/{}/device:{}/precision:{}", what.name, device.str(),
                         name_of(options.precision));
    const bool is_usual = options.precision == Precision::f32;
    return fmt::format("core/{}/threads:{}{}", what.name, threads,
                       is_usual ? "" : fmt::format("/precision:{}", name_of(options.precision)));
  }
  void operator()(benchmark::State& state) const try {
    configure_cpu_devices({.cores_per_device = threads});
    launch_threads(1, [&](Comm& alone) {
      const DeviceScope on(device);
      const PrecisionScope precision(options.precision);
      const Samples samples = time_case(alone, options.timing, device, what.make());
      report(state, samples, counters(what, rates, quantile(samples.seconds, 0.5)));
      SampleLine line;
      line.name = name();
      line.samples = samples;
      append_samples(options.samples, line);
    });
  } catch (const Error& e) {
    report_failure(state, e);
  }
};

void add_benchmarks(Device device, int threads, const Options& options,
                    std::map<std::string, std::string>& context) {
  const bool on_cpu = device.type == DeviceType::cpu;
  configure_cpu_devices({.cores_per_device = threads});
  const DeviceScope on(device);
  const PrecisionScope precision(options.precision);
  const Rates rates = on_cpu ? measure_cpu(threads) : measure_gpu(device);
  const std::string suffix =
      on_cpu ? fmt::format("_threads_{}", threads) : fmt::format("_{}", name_of(options.precision));
  context["gemm_flop_per_s" + suffix] = fmt::format("{:.4g}", rates.gemm_flop_per_s);
  context["copy_bytes_per_s" + suffix] = fmt::format("{:.4g}", rates.copy_bytes_per_s);
  const CorePlace place = place_on(device);
  for (const auto& cases : {step_cases(place), operation_cases(place)})
    for (const CoreCase& c : cases) {
      const Run run{c, device, threads, rates, options};
      benchmark::RegisterBenchmark(run.name().c_str(), run)->Iterations(1)->UseManualTime();
    }
}

void add_gpu(const Options& options, std::map<std::string, std::string>& context) {
  const Device device = Device::parse(options.device);
  HM_REQUIRE(device.type == DeviceType::cuda,
             "--device is a GPU, like cuda:0; {} is measured without", device.str());
  const int here = gpu::count();
  const bool is_here = device.index < here;
  HM_REQUIRE(is_here, "--device {}: {}", device.str(),
             here == 0 ? gpu::unavailable() : fmt::format("{} GPUs are here", here));
  check_precision(options.precision, {&device, 1});
  add_benchmarks(device, cpu_limits().usable, options, context);
}

void add_cpu(const Options& options, std::map<std::string, std::string>& context) {
  const Device cpu;
  check_precision(options.precision, {&cpu, 1});
  for (const int threads : std::set<int>{1, cpu_limits().usable})
    add_benchmarks(cpu, threads, options, context);
}

int run(int argc, char** argv) {
  Options options;
  std::vector<std::string> words = parse_core(argc, argv, options);
  words.insert(words.begin(), argv[0]);

  std::map<std::string, std::string> context;
  options.device.empty() ? add_cpu(options, context) : add_gpu(options, context);
  add_context(context);
  return run_benchmarks(std::move(words));
}

}  // namespace
}  // namespace howmany::benches

int main(int argc, char** argv) {
  using namespace howmany::benches;
  return run_program("core_bench", [&] { return run(argc, argv); });
}
