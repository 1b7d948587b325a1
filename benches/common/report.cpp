// SPDX-License-Identifier: Apache-2.0
#include "benches/common/report.h"

#include <cstdio>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "benches/common/timing.h"
#include "core/base/error.h"
#include "core/base/schema/metrics.h"
#include "core/base/schema/samples.h"
#include "core/base/statistics.h"
#include "core/base/text/utf8.h"

namespace howmany::benches {
namespace {

using benchmark::BenchmarkReporter;
using Run = BenchmarkReporter::Run;

// Removes Google's suffixes from the names and sets iterations to the number of samples. During the
// run Google must see one iteration, because its statistics require equal numbers in all
// repetitions.
std::vector<Run> as_told(std::vector<Run> runs) {
  for (Run& run : runs) {
    run.run_name.iterations.clear();
    run.run_name.time_type.clear();
    const auto samples = run.counters.find(metric::kSamples);
    if (run.run_type != Run::RT_Iteration || samples == run.counters.end()) continue;
    const double n = samples->second.value;
    run.iterations = static_cast<benchmark::IterationCount>(n);
    run.real_accumulated_time *= n;
    run.cpu_accumulated_time *= n;
  }
  return runs;
}

// Shows runs as the flags specify and records whether one failed.
class Display : public BenchmarkReporter {
 public:
  explicit Display(bool quiet)
      : inner_(quiet ? nullptr : benchmark::CreateDefaultDisplayReporter()) {
    if (quiet) SetErrorStream(&nowhere_);
    if (quiet) SetOutputStream(&nowhere_);
  }
  bool ReportContext(const Context& context) override {
    return inner_ == nullptr || inner_->ReportContext(context);
  }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) failed_ = failed_ || run.error_occurred;
    if (inner_) inner_->ReportRuns(as_told(runs));
  }
  void Finalize() override {
    if (inner_) inner_->Finalize();
  }
  bool failed() const { return failed_; }

 private:
  std::unique_ptr<BenchmarkReporter> inner_;
  std::ostream nowhere_{nullptr};
  bool failed_ = false;
};

// Writes the whole JSON after every run to a temporary name, which is then renamed.
class KeptJson : public BenchmarkReporter {
 public:
  explicit KeptJson(std::string path) : path_(std::move(path)) {}
  bool ReportContext(const Context& context) override {
    context_.emplace(context);
    write();
    return true;
  }
  void ReportRuns(const std::vector<Run>& runs) override {
    groups_.push_back(as_told(runs));
    write();
  }

 private:
  void write() const {
    std::ostringstream text;
    benchmark::JSONReporter reporter;
    reporter.SetOutputStream(&text);
    reporter.SetErrorStream(&text);
    reporter.ReportContext(*context_);
    for (const std::vector<Run>& group : groups_) reporter.ReportRuns(group);
    reporter.Finalize();
    const std::string temporary = path_ + ".tmp";
    std::ofstream file(temporary);
    file << text.str() << std::flush;
    if (!file || std::rename(temporary.c_str(), path_.c_str()) != 0)
      std::cerr << "cannot write " << path_ << "\n";
  }

  std::string path_;
  std::optional<Context> context_;
  std::vector<std::vector<Run>> groups_;
};

std::string value_of(int argc, char** argv, const std::string& flag) {
  std::string value;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.starts_with(flag + "=")) value = argument.substr(flag.size() + 1);
  }
  return value;
}

// Reads --benchmark_out as Google Benchmark does, since the ranks' arguments must be equal.
std::string out_of(int argc, char** argv) {
  const std::string flag = value_of(argc, argv, "--benchmark_out");
  const char* const path = std::getenv("BENCHMARK_OUT");
  return flag.empty() && path != nullptr ? path : flag;
}

bool can_write(const std::string& path) { return std::ofstream(path, std::ios::app).good(); }

// If its output cannot be opened, Google Benchmark exits. This check prints the error in the form
// of the other programs here.
bool refused(int argc, char** argv, bool quiet) {
  const std::string out = out_of(argc, argv);
  if (quiet || out.empty() || can_write(out)) return false;
  std::cerr << argv[0] << ": cannot write --benchmark_out " << out << "\n";
  return true;
}

}  // namespace

void report(benchmark::State& state, const Samples& samples,
            const std::map<std::string, double>& counters) {
  const std::vector<double>& seconds = samples.seconds;
  HM_REQUIRE(!seconds.empty(), "[report] nothing was timed");
  while (state.KeepRunning()) state.SetIterationTime(mean(seconds));
  for (const auto& [name, value] : counters) state.counters[name] = value;
  state.counters[metric::kMedianS] = quantile(seconds, 0.5);
  state.counters[metric::kP95S] = quantile(seconds, 0.95);
  state.counters[metric::kMinS] = quantile(seconds, 0);
  state.counters[metric::kCv] = coefficient_of_variation(seconds);
  state.counters[metric::kSamples] = static_cast<double>(seconds.size());
}

void report_nothing(benchmark::State& state, const std::string& why) {
  while (state.KeepRunning()) state.SetIterationTime(1);
  if (why.empty()) return;
  state.counters[metric::kSkipped] = 1;
  state.SetLabel(with_visible_controls("skipped: " + why));
}

void report_failure(benchmark::State& state, const std::exception& error) {
  state.SkipWithError(with_visible_controls(error.what()).c_str());
}

void append_samples(const std::string& path, const SampleLine& line) {
  if (path.empty()) return;
  nlohmann::ordered_json json = {{sample_line::kName, line.name},
                                 {sample_line::kSeconds, line.samples.seconds},
                                 {sample_line::kConverged, line.samples.converged},
                                 {sample_line::kFlags, line.flags},
                                 {sample_line::kParameters, line.parameters},
                                 {sample_line::kWorld, line.world}};
  if (!line.steps.is_null()) json[sample_line::kSteps] = line.steps;
  if (!line.why.is_null()) json[sample_line::kWhy] = line.why;
  if (!line.counted.is_null()) json[sample_line::kCounted] = line.counted;
  std::ofstream file(path, std::ios::app);
  file << json.dump() + "\n" << std::flush;
  HM_ENSURE(file.good(), "[samples] cannot write {}", path);
}

int run_benchmarks(int argc, char** argv, bool quiet) {
  if (refused(argc, argv, quiet)) return 2;
  std::vector<char*> arguments(argv, argv + argc);
  char no_file[] = "--benchmark_out=";
  if (quiet) arguments.push_back(no_file);
  int count = static_cast<int>(arguments.size());
  arguments.push_back(nullptr);
  benchmark::Initialize(&count, arguments.data());
  if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) return 2;
  const std::string out = quiet ? "" : out_of(argc, argv);
  const std::string format = value_of(argc, argv, "--benchmark_out_format");
  Display display(quiet);
  std::unique_ptr<KeptJson> kept;
  if (!out.empty() && (format.empty() || format == "json")) kept = std::make_unique<KeptJson>(out);
  const size_t ran = benchmark::RunSpecifiedBenchmarks(&display, kept.get());
  benchmark::Shutdown();
  return ran == 0 ? 2 : display.failed() ? 3 : 0;
}

int run_benchmarks(std::vector<std::string> arguments, bool quiet) {
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  return run_benchmarks(static_cast<int>(argv.size()), argv.data(), quiet);
}

}  // namespace howmany::benches
