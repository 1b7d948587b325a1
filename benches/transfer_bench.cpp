// What moving data costs on this machine: copies of host memory by size and threads, many small
// ones, between NUMA nodes, loopback TCP, and the transfers of one training step.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <set>

#include "benches/copies.h"
#include "benches/machine.h"
#include "benches/program.h"
#include "benches/verify.h"
#include "core/error.h"

namespace howmany::benches {
namespace {

constexpr const char* kName = "transfer_bench";
constexpr const char* kExamples = R"(Examples:
  transfer_bench                                      copies by size, with one thread and with all
  transfer_bench --ceilings                           only what limits communication here
  transfer_bench --model resnet18 --batch 16          also what one training step moves
Flags of Google Benchmark (--benchmark_...) work as usual.
Exit codes: 0 measured, 1 wrong data, 2 bad usage or input, 3 a measurement failed.)";

struct Flags {
  int64_t min_bytes = 64, max_bytes = 256 << 20;
  double budget_seconds = 20;
  std::string samples;
  std::vector<std::string> models;
  int64_t batch = 0;
  bool ceilings = false, list = false;
};

struct Case {
  std::string name;
  std::map<std::string, std::string> parameters;  // "kind" among them
  double bytes = 0;
  std::function<Samples(const TimingOptions&)> measure;
  std::string skipped = "";
};

class Cases {
 public:
  explicit Cases(const Flags& flags) : flags_(flags) {}

  std::vector<Case> make() {
    const int all = cpu_device_count();
    const std::set<int> threads = {1, std::min(2, all), all};
    if (flags_.ceilings) {
      for (const int n : threads) add_copy(n, int64_t{64} << 20);
      add_loopback(64);
      add_loopback(int64_t{16} << 20);
      return std::move(cases_);
    }
    for (const int n : threads)
      for (int64_t bytes = 64; bytes <= flags_.max_bytes; bytes *= 4)
        if (bytes >= flags_.min_bytes) add_copy(n, bytes);
    add_small_copies();
    add_loopback(64);
    add_loopback(int64_t{16} << 20);
    add_numa();
    add_gpu();
    for (const std::string& model : flags_.models) add_step(model);
    return std::move(cases_);
  }

 private:
  void add(Case c) {
    c.name = "transfer/" + c.parameters["kind"];
    for (const auto& [name, value] : c.parameters)
      if (name != "kind" && !value.empty()) c.name += "/" + name + ":" + value;
    cases_.push_back(std::move(c));
  }

  void add_copy(int threads, int64_t bytes) {
    add({.name = "",
         .parameters = {{"kind", "copy"},
                        {"threads", std::to_string(threads)},
                        {"bytes", std::to_string(bytes)}},
         .bytes = static_cast<double>(bytes),
         .measure = [=](const TimingOptions& o) { return time_copy(threads, bytes, o); }});
  }

  void add_small_copies() {
    constexpr int64_t kTotal = 4 << 20;
    for (int64_t bytes = 16; bytes <= (1 << 20); bytes *= 16)
      add({.name = "",
           .parameters = {{"kind", "small_copies"},
                          {"bytes", std::to_string(bytes)},
                          {"count", std::to_string(kTotal / bytes)}},
           .bytes = kTotal,
           .measure = [=](const TimingOptions& o) {
             return time_small_copies(bytes, kTotal / bytes, o);
           }});
  }

  void add_loopback(int64_t bytes) {
    add({.name = "",
         .parameters = {{"kind", "loopback_tcp"}, {"bytes", std::to_string(bytes)}},
         .bytes = static_cast<double>(bytes),
         .measure = [=](const TimingOptions& o) { return time_loopback(bytes, o); }});
  }

  void add_skipped(const std::string& kind, const std::string& why) {
    add({.name = "", .parameters = {{"kind", kind}}, .measure = {}, .skipped = why});
  }

  void add_numa() {
    constexpr int64_t kBytes = 64 << 20;
    const auto nodes = describe_numa();
    if (nodes.size() < 2)
      return add_skipped("numa_copy", "this machine has one NUMA node: no memory is remote");
    for (const auto& from : nodes)
      for (const auto& on : nodes) {
        const int a = from["node"].get<int>(), b = on["node"].get<int>();
        add({.name = "",
             .parameters = {{"kind", "numa_copy"},
                            {"from", std::to_string(a)},
                            {"on", std::to_string(b)},
                            {"bytes", std::to_string(kBytes)}},
             .bytes = kBytes,
             .measure = [=](const TimingOptions& o) { return time_numa_copy(a, b, kBytes, o); }});
      }
  }

  void add_gpu() {
    for (const char* kind : {"host_to_device", "device_to_host", "device_to_device"})
      add_skipped(kind, "this build has no cuda devices");
  }

  void add_step(const std::string& model) {
    Workload work;
    work.model = model;
    work.devices = devices_from("", 1);
    work.global_batch = flags_.batch > 0 ? flags_.batch : model.starts_with("resnet") ? 16 : 128;
    work.steady = true;
    work.optim.lr = 0.01;
    benches::check(work);
    const ModelSpec spec = make_model(model);
    const int64_t width = static_cast<int64_t>(size_of(spec.input));
    const int64_t in = (spec.sample.numel() * width + 8) * work.global_batch;
    const auto add_part = [&](const char* part, int64_t bytes, auto measure) {
      add({.name = "",
           .parameters = {{"kind", "step"},
                          {"part", part},
                          {"model", model},
                          {"batch", std::to_string(work.global_batch)},
                          {"bytes", bytes > 0 ? std::to_string(bytes) : ""}},
           .bytes = static_cast<double>(bytes),
           .measure = measure});
    };
    add_part("batch_in", in, [=](const TimingOptions& o) { return time_copy(1, in, o); });
    add_part("loss_out", 4, [](const TimingOptions& o) { return time_copy(1, 4, o); });
    add_part("whole", 0, [=](const TimingOptions& o) { return time_step(work, o); });
  }

  static Samples time_step(const Workload& work, const TimingOptions& options) {
    Samples samples;
    const DatasetPtr data = open_dataset(work);
    launch_threads(1, [&](Comm& comm) {
      const DeviceScope on(work.devices[0]);
      Trainer trainer(work, *data, comm, work.devices[0]);
      samples = time_iterations(comm, options, [&] { trainer.train(trainer.next()).value(); });
    });
    return samples;
  }

  const Flags& flags_;
  std::vector<Case> cases_;
};

// Half of what is free, for a source and a target.
std::string too_large(double bytes) {
  const double free = describe_memory()["available_bytes"].get<double>();
  if (4 * bytes <= free) return "";
  return fmt::format("copies of {:.1f} GB in {:.1f} GB of free memory", bytes / 1e9, free / 1e9);
}

void run_case(benchmark::State& state, const Case& c, const Flags& flags, double seconds,
              bool& wrong) {
  const std::string why = c.skipped.empty() ? too_large(c.bytes) : c.skipped;
  if (!why.empty()) return report_nothing(state, why);
  try {
    const Samples samples = c.measure({.budget_seconds = seconds, .max_iterations = 5000});
    const double median = quantile(samples.seconds, 0.5);
    std::map<std::string, double> counters = {{"p99_s", quantile(samples.seconds, 0.99)}};
    if (c.bytes > 0) {
      counters["bytes"] = c.bytes;
      counters["bytes_per_s"] = c.bytes / median;
    }
    report(state, samples, counters);
    append_samples(flags.samples,
                   {.name = c.name, .samples = samples, .flags = {}, .parameters = c.parameters});
  } catch (const std::exception& e) {
    wrong = wrong || dynamic_cast<const WrongData*>(&e) != nullptr;
    state.SkipWithError(e.what());
  }
}

using Pairing = PairedSamples(int64_t bytes, int rounds);

void run_fidelity(benchmark::State& state, const std::string& against, Pairing* time_pair,
                  bool& wrong) {
  try {
    const PairedSamples pairs = time_pair(int64_t{64} << 20, 41);
    report(state, pairs.ours,
           {{"of_" + against, quantile(pairs.ratios, 0.5)},
            {against + "_s", quantile(pairs.bare.seconds, 0.5)}});
  } catch (const std::exception& e) {
    wrong = wrong || dynamic_cast<const WrongData*>(&e) != nullptr;
    state.SkipWithError(e.what());
  }
}

void add_flags_of(CLI::App& app, Flags& flags) {
  app.add_option("--min-bytes", flags.min_bytes)->check(CLI::Range(1L, 1L << 40));
  app.add_option("--max-bytes", flags.max_bytes)->check(CLI::Range(1L, 1L << 40));
  app.add_option("--model", flags.models, "also what a training step of it moves");
  app.add_option("--batch", flags.batch, "of that step [by model]")->check(CLI::PositiveNumber);
  app.add_option("--budget-seconds", flags.budget_seconds, "of timed copies in all")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--samples", flags.samples, "append every timed copy to this file")
      ->envname("HOWMANY_SAMPLES");
  app.add_flag("--ceilings", flags.ceilings, "only what limits communication on this machine");
  app.add_flag("--list", flags.list, "names of the cases, one a line");
}

int run(int argc, char** argv) {
  Flags flags;
  CLI::App app("Times copies between the memories of this machine.", kName);
  app.footer(kExamples);
  add_flags_of(app, flags);
  std::vector<std::string> google = parse(app, argc, argv);
  HM_REQUIRE(place_from_environment().world == 1,
             "{} measures one machine from one process: start it without a launcher", kName);
  configure_cpu_devices({});
  const std::vector<Case> cases = Cases(flags).make();
  if (flags.list) {
    for (const Case& c : cases) std::cout << c.name << "\n";
    return 0;
  }
  bool wrong = false;
  const double seconds = flags.budget_seconds / static_cast<double>(cases.size());
  const auto add = [&](const std::string& name, const auto& body) {
    benchmark::RegisterBenchmark(name.c_str(), body)
        ->Iterations(1)
        ->UseManualTime()
        ->Unit(benchmark::kMicrosecond);
  };
  for (const Case& c : cases)
    add(c.name, [&](benchmark::State& s) { run_case(s, c, flags, seconds, wrong); });
  const std::map<std::string, Pairing*> pairings = {{"memcpy", &time_against_memcpy},
                                                    {"stream", &time_against_stream}};
  for (const auto& [against, time_pair] : pairings)
    if (!flags.ceilings)
      add("transfer/fidelity/" + against,
          [&](benchmark::State& s) { run_fidelity(s, against, time_pair, wrong); });
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
