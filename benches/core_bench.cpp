// Operations and whole training steps against their floor: FLOP over the machine's own GEMM rate,
// or bytes over its copy rate, both measured first with the same cores. A convolution counts the
// multiplications of its direct form, so Winograd's may come out above 1.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstring>
#include <limits>
#include <set>
#include <thread>

#include "benches/core_cases.h"
#include "benches/program.h"
#include "benches/support.h"
#include "core/copy.h"
#include "core/device.h"
#include "core/error.h"
#include "core/ops.h"

namespace howmany::benches {
namespace {

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

// The best of square products, and of a copy far larger than the caches (bytes read plus written).
Rates measure_rates(int threads) {
  Rates rates;
  for (const int64_t n : {1024, 2048}) {
    const Tensor a = Tensor::full({n, n}, 0.5), b = Tensor::full({n, n}, 0.25);
    const double flop = 2 * static_cast<double>(n * n) * static_cast<double>(n);
    const double best = best_seconds(8, [&] { ops::matmul(a, b); });
    rates.gemm_flop_per_s = std::max(rates.gemm_flop_per_s, flop / best);
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

std::map<std::string, double> counters(const CoreCase& c, const Rates& rates, double median) {
  std::map<std::string, double> values;
  double floor = 0;
  if (c.flop > 0) {
    values["flop_per_s"] = c.flop / median;
    floor = c.flop / rates.gemm_flop_per_s;
  }
  if (c.bytes > 0) {
    values["bytes_per_s"] = c.bytes / median;
    floor = std::max(floor, c.bytes / rates.copy_bytes_per_s);
  }
  if (c.samples > 0) values["samples_per_s"] = c.samples / median;
  if (c.parameters > 0) values["parameters"] = c.parameters;
  values["of_floor"] = floor / median;
  return values;
}

struct Options {
  TimingOptions timing;
  std::string samples;
};

// One case on one set of cores.
struct Run {
  CoreCase what;
  int threads = 1;
  Rates rates;
  Options options;

  std::string name() const { return fmt::format("core/{}/threads:{}", what.name, threads); }
  void operator()(benchmark::State& state) const try {
    configure_cpu_devices({.cores_per_device = threads});
    launch_threads(1, [&](Comm& alone) {
      const DeviceScope on(Device{});
      const Samples samples = time_iterations(alone, options.timing, what.make());
      report(state, samples, counters(what, rates, quantile(samples.seconds, 0.5)));
      SampleLine line;
      line.name = name();
      line.samples = samples;
      append_samples(options.samples, line);
    });
  } catch (const Error& e) {
    state.SkipWithError(e.what());
  }
};

void add_benchmarks(int threads, const Options& options,
                    std::map<std::string, std::string>& context) {
  configure_cpu_devices({.cores_per_device = threads});
  Rates rates;
  {
    const DeviceScope on(Device{});
    rates = measure_rates(threads);
  }
  const std::string suffix = fmt::format("_threads_{}", threads);
  context["gemm_flop_per_s" + suffix] = fmt::format("{:.4g}", rates.gemm_flop_per_s);
  context["copy_bytes_per_s" + suffix] = fmt::format("{:.4g}", rates.copy_bytes_per_s);
  for (const auto& cases : {step_cases(), operation_cases()})
    for (const CoreCase& c : cases) {
      const Run run{c, threads, rates, options};
      benchmark::RegisterBenchmark(run.name().c_str(), run)->Iterations(1)->UseManualTime();
    }
}

int run(int argc, char** argv) {
  Options options;
  CLI::App app("Times operations and whole training steps against the machine's own rates.",
               "core_bench");
  app.add_option("--budget", options.timing.budget_seconds, "Seconds for each, at most")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--samples", options.samples, "Append every sample to this file, a line each");
  std::vector<std::string> words = parse(app, argc, argv);
  words.insert(words.begin(), argv[0]);

  std::map<std::string, std::string> context;
  for (const int threads : std::set<int>{1, cpu_limits().usable})
    add_benchmarks(threads, options, context);
  add_context(context);
  return run_benchmarks(std::move(words));
}

}  // namespace
}  // namespace howmany::benches

int main(int argc, char** argv) {
  using namespace howmany::benches;
  return run_program("core_bench", [&] { return run(argc, argv); });
}
