// What is compared: a program's benchmarks with every sample, as read from any Google Benchmark
// JSON (1.5 and later, older where it can be understood) or from a result folder of ours. Files are
// untrusted: InputError names the file and the place. Values only; not tied to any thread.
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
  int64_t index = 0;  // repetition or block: what pairs two sides that were measured in turns
  double value = 0;   // finite
};

struct Benchmark {
  std::string name;                                    // run_name: without aggregate suffixes
  std::map<std::string, std::vector<Sample>> metrics;  // "real_time", "cpu_time", counters
  std::map<std::string, double> aggregates;            // median, else mean, when that is all
  std::string error;                                   // the first thing that went wrong
  std::string skipped;                                 // it was, and why
  int64_t least_iterations = 0, most_iterations = 0;   // over the samples; 0: unknown
};

struct Suite {
  std::string source;
  nlohmann::json context = nlohmann::json::object();
  std::vector<Benchmark> benchmarks;  // names differ; in the order of the file
  std::vector<std::string> notes;     // what was odd: duplicates, rows left out
  bool launches = false;  // samples are of separate processes, not repetitions within one
};

// A file, or a folder: then every Google Benchmark file in it, with the samples beside them.
Suite read_suite(const std::string& path);
Suite suite_from_text(std::string text, const std::string& source);
// Takes the times of `suite` from lines of samples: one process each, its median.
void take_samples(Suite& suite, const std::string& text, const std::string& source);

}  // namespace howmany::reports
