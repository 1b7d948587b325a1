// What `howmany backend` and `howmany transfer` share: one run of a bench program with its files,
// and its rows as measurements of the summary. One thread.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/process.h"
#include "reports/results/bench_file.h"
#include "reports/results/record.h"

namespace howmany::reports {

constexpr int kWrongData = 1;

// The backends of the user's torch.distributed are "torch:gloo" and so on, and this program
// measures them.
inline constexpr std::string_view kTorchPrefix = "torch:";
inline constexpr const char* kTorchProgram = "torch_collectives.py";
inline bool is_torch_backend(std::string_view name) { return name.starts_with(kTorchPrefix); }

struct SuiteRun {
  std::string program;
  Ended ended;
  BenchFile file;  // what the program had finished, whatever became of it
  std::vector<SampleLine> samples;
  int round = 0;
  std::string problem;        // why it counts as failed: it exited badly, or left no readable file
  double busy_elsewhere = 0;  // share of the cores; NaN: not known
};

struct SuiteCommand {
  std::string program, folder;
  std::vector<std::string> arguments;
  std::string interpreter = {};  // path of the Python that runs the program; empty: none
  double timeout_seconds = 0;
  bool verbose = false;
  // Where it leaves its files it learns from the environment: other ranks have the same arguments.
  bool one_of_many = false;
  std::function<void()> on_tick = {};
};
// Throws InputError with the program's own line when it refuses its arguments.
SuiteRun run_suite(const SuiteCommand& command);

// One measurement per row: suite, case and parameters from its name
// ("backend/all_reduce/gloo/dtype:f32/devices:2/bytes:1024"; "torch:gloo" is part of the case),
// metrics from its counters, intervals from its samples, and the flags "failed: <why>" and
// "skipped: <why>".
std::vector<Measurement> measurements_of(const SuiteRun& run);

// What the rows of a bench say of the time that they need.
struct TimeNeeded {
  double seconds = 0;  // with as many calls of each case as were asked for
  bool had = true;     // no case was left out for want of it
};
TimeNeeded time_needed(const SuiteRun& run);

bool has_wrong_data(const std::vector<Measurement>& measurements);
bool has_failed(const Measurement& m);
// Why it was skipped; empty when it was not.
std::string why_skipped(const Measurement& m);
// "" and NaN when absent.
std::string parameter_of(const Measurement& m, const std::string& key);
double value_of(const Measurement& m, const std::string& metric);

// The largest of all runs; 0 if none is known.
double max_busy_elsewhere(const std::vector<SuiteRun>& runs);
// Writes that as busy_elsewhere_fraction. Not for ranks that a launcher started: they are no
// children of ours and would count as other programs.
void add_busy_elsewhere(const std::vector<SuiteRun>& runs, nlohmann::json& context);
double busy_elsewhere_in(const nlohmann::json& context);  // 0 if it is not reported

// Throws InputError when `out` holds a run.
void refuse_old_results(const std::string& out);
// A new folder for the files of a run: `out`, or howmany-out/<UTC time>. Throws InputError when it
// holds a run.
std::string result_folder(const std::string& out);
// <suite>.json and <suite>.samples.jsonl of several runs, as one.
void write_suite(const std::string& folder, const std::string& suite,
                 const std::vector<SuiteRun>& runs);
// The summary's files (summary_files.h), with what howmany adds to the context.
void write_summary_files(const std::string& folder, Summary& summary,
                         const nlohmann::json& request);

}  // namespace howmany::reports
