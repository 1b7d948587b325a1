// SPDX-License-Identifier: Apache-2.0
// Shared by `howmany backend` and `howmany transfer`: runs a bench program and converts its rows to
// measurements. One thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/process.h"
#include "reports/results/bench_file.h"
#include "reports/results/record.h"

namespace howmany::reports {

// Backends of the user's torch.distributed have names such as "torch:gloo". kTorchProgram measures
// them.
inline constexpr std::string_view kTorchPrefix = "torch:";
inline constexpr const char* kTorchProgram = "torch_collectives.py";
inline bool is_torch_backend(std::string_view name) { return name.starts_with(kTorchPrefix); }

struct SuiteRun {
  std::string program;
  ProcessResult ended;
  BenchFile file;  // rows finished, even if the program failed
  std::vector<SampleLine> samples;
  int round = 0;
  std::string problem;        // reason of failure: bad exit, or no readable file
  double busy_elsewhere = 0;  // share of the cores; NaN: unknown
};

struct SuiteCommand {
  std::string program, folder;
  std::vector<std::string> arguments;
  std::string interpreter = {};  // path of the Python interpreter; empty: none
  double timeout_seconds = 0;
  bool verbose = false;
  // Passes the output paths by environment, because other ranks have the same arguments.
  bool one_of_many = false;
};
// Throws InputError with the program's message if it refuses its arguments.
SuiteRun run_suite(const SuiteCommand& command);

// Returns one measurement per row.
//
// - name: suite, case and parameters, as in
//   "backend/all_reduce/gloo/dtype:f32/devices:2/bytes:1024". "torch:gloo" is part of the case.
// - metrics: from counters, with intervals from samples
// - flags: "failed: <why>" and "skipped: <why>"
std::vector<Measurement> measurements_of(const SuiteRun& run);

bool has_wrong_data(const std::vector<Measurement>& measurements);

// Returns the largest share of all runs, or 0 if none is known.
double max_busy_elsewhere(const std::vector<SuiteRun>& runs);
// Adds it to the context as busy_elsewhere_fraction. Do not call it for ranks of a launcher: they
// are not our children and would count as other programs.
void add_busy_elsewhere(const std::vector<SuiteRun>& runs, nlohmann::json& context);
double busy_elsewhere_in(const nlohmann::json& context);  // 0 if not reported

// Throws InputError if `out` already holds a run.
void refuse_old_results(const std::string& out);
// Writes <suite>.json and <suite>.samples.jsonl of several runs, merged.
void write_suite(const std::string& folder, const std::string& suite,
                 const std::vector<SuiteRun>& runs);
// Writes the summary's files (summary_files.h) with howmany's members of the context.
void write_summary_files(const std::string& folder, Summary& summary,
                         const nlohmann::json& request);

}  // namespace howmany::reports
