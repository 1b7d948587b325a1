// SPDX-License-Identifier: Apache-2.0
// Reads the files of a bench program: Google Benchmark JSON, and one line of samples per run. Both
// are untrusted: a bench may die within a line, print NaN or repeat a name. Readers throw
// InputError that names the place. Values only; not tied to any thread.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace howmany::reports {

struct BenchRow {
  std::string name;                        // run_name, Google's own suffixes included
  double seconds = 0;                      // real_time per iteration
  int repetition = 0;                      // repetition_index
  int family = 0;                          // family_index
  std::map<std::string, double> counters;  // finite user counters only
  std::string error;                       // error_message; empty if the run succeeded
  nlohmann::json json;                     // the row as read; null replaces non-finite numbers
};

// True if `key` is a number that Google Benchmark writes itself, not a user counter.
bool is_google_number(std::string_view key);
// Returns nullopt unless `time_unit` is "ns", "us", "ms" or "s".
std::optional<double> seconds_per_unit(std::string_view time_unit);

struct BenchFile {
  nlohmann::json context = nlohmann::json::object();
  std::vector<BenchRow> rows;  // iterations only: aggregates, BigO and RMS rows are left out
};

BenchFile bench_from_json(const nlohmann::json& json, const std::string& source);
BenchFile read_bench(const std::string& path);

struct SampleLine {
  std::string name;
  std::vector<double> seconds;  // finite, positive, in the order measured
  bool converged = false;
  std::vector<std::string> flags;
  nlohmann::json json;  // the line as read
};

std::vector<SampleLine> samples_from_text(const std::string& text, const std::string& source);
std::vector<SampleLine> read_samples(const std::string& path);

}  // namespace howmany::reports
