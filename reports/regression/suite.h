// SPDX-License-Identifier: Apache-2.0
// Reads the benchmarks of a program with all samples, from Google Benchmark JSON (1.5 or later;
// older if possible) or a results folder. Files are untrusted: InputError names the file and the
// place. Values only; not tied to any thread.
//
//   Suite suite = read_suite("before.json");      // or "howmany-out/20260101T120000Z"
//   suite.benchmarks[0].metrics.at("real_time")   // seconds, whatever the file's time_unit
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace howmany::reports {

struct Sample {
  int64_t index = 0;  // repetition or block; pairs the samples of interleaved sides
  double value = 0;   // finite
};

struct Benchmark {
  std::string name;                                    // run_name: without aggregate suffixes
  std::map<std::string, std::vector<Sample>> metrics;  // "real_time", "cpu_time", counters
  std::map<std::string, double> aggregates;            // median, else mean, if there are no samples
  std::string error;                                   // the first error
  std::string skipped;                                 // reason if skipped
  int64_t most_iterations = 0;                         // of the samples; 0: unknown
};

struct Suite {
  std::string source;
  nlohmann::json context = nlohmann::json::object();
  std::vector<Benchmark> benchmarks;  // unique names, in file order
  std::vector<std::string> notes;     // irregularities: duplicates, omitted rows
  bool launches = false;  // samples come from separate processes, not repetitions in one
};

// Reads a file, or every Google Benchmark file of a folder with its samples.
Suite read_suite(const std::string& path);
Suite suite_from_text(std::string text, const std::string& source);
// Replaces the times of `suite` by lines of samples: the median of each process.
void take_samples(Suite& suite, const std::string& text, const std::string& source);

}  // namespace howmany::reports
