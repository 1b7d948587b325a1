// SPDX-License-Identifier: Apache-2.0
#include "reports/regression/suite.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <functional>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "core/base/statistics.h"
#include "core/base/text/files.h"
#include "core/base/text/json.h"
#include "reports/regression/other_formats.h"
#include "reports/results/bench_file.h"
#include "reports/results/record.h"

namespace howmany::reports {
namespace {

namespace fs = std::filesystem;
constexpr int64_t kMaxBytes = int64_t{512} << 20;

// Name endings of aggregates. Releases before 1.4 mark them only by name.
constexpr std::array<std::string_view, 6> kAggregates = {"_median", "_mean", "_stddev",
                                                         "_cv",     "_BigO", "_RMS"};

std::string_view aggregate_ending(std::string_view name) {
  for (const std::string_view ending : kAggregates) {
    if (name.ends_with(ending)) return ending;
  }
  return "";
}

// A row of a file of any release. Its fields may have any type.
struct SuiteRow {
  std::string name, run_name, run_type, aggregate_name, aggregate_unit, time_unit;
  std::string error_message, skip_message;
  bool error = false, skipped = false, has_run_type = false;
  std::optional<double> real_time, cpu_time;  // as written; absent if not finite
  int64_t repetition_index = -1, family_index = -1, instance_index = -1, iterations = 0;
  std::vector<std::pair<std::string, double>> counters;  // finite only
};

void set(SuiteRow& row, const std::string& key, const std::string& value) {
  static constexpr std::array<std::pair<std::string_view, std::string SuiteRow::*>, 8> kTexts = {
      {{"name", &SuiteRow::name},
       {"run_name", &SuiteRow::run_name},
       {"run_type", &SuiteRow::run_type},
       {"aggregate_name", &SuiteRow::aggregate_name},
       {"aggregate_unit", &SuiteRow::aggregate_unit},
       {"time_unit", &SuiteRow::time_unit},
       {"error_message", &SuiteRow::error_message},
       {"skip_message", &SuiteRow::skip_message}}};
  for (const auto& [name, member] : kTexts) {
    if (key == name) row.*member = value;
  }
  if (key == "run_type") row.has_run_type = true;
  if (key == "skipped") row.skipped = !value.empty();  // 1.8: the kind of skip, by name
}

// Returns false if `key` is an index or a count, and `value` is not.
bool set(SuiteRow& row, const std::string& key, double value) {
  static constexpr std::array<std::pair<std::string_view, int64_t SuiteRow::*>, 4> kCounts = {
      {{"repetition_index", &SuiteRow::repetition_index},
       {"family_index", &SuiteRow::family_index},
       {"per_family_instance_index", &SuiteRow::instance_index},
       {"iterations", &SuiteRow::iterations}}};
  if (!std::isfinite(value)) return true;
  for (const auto& [name, member] : kCounts) {
    if (key != name) continue;
    if (value < 0 || value > 9e15 || value != std::floor(value)) return false;
    row.*member = static_cast<int64_t>(value);
    return true;
  }
  if (key == "real_time") {
    row.real_time = value;
  } else if (key == "cpu_time") {
    row.cpu_time = value;
  } else if (!is_google_number(key) || key == "allocs_per_iter" || key == "max_bytes_used") {
    row.counters.emplace_back(key, value);
  }
  return true;
}

SuiteRow row_from(const nlohmann::json& json, const std::string& place) {
  SuiteRow row;
  for (const auto& [key, value] : json.items()) {
    if (value.is_string()) set(row, key, value.get_ref<const std::string&>());
    if (value.is_boolean() && key == "error_occurred") row.error = value.get<bool>();
    if (value.is_boolean() && key == "skipped") row.skipped = value.get<bool>();
    if (value.is_number() && !set(row, key, value.get<double>())) {
      throw InputError(
          fmt::format("{}.{}: expected a count, found {}", place, key, value.get<double>()));
    }
  }
  if (row.name.empty() && row.run_name.empty()) {
    throw InputError(fmt::format("{}: \"name\" is missing", place));
  }
  return row;
}

// Google Benchmark writes a user's counter of these names as a second key, after its own.
bool may_repeat(const std::string& path) {
  for (const char* const name : {"iterations", "threads", "repetitions", "repetition_index",
                                 "family_index", "per_family_instance_index"})
    if (path == fmt::format("benchmarks.{}", name)) return true;
  return false;
}

// Calls `take` for every row of "benchmarks" and returns "context". Counts the counters that are
// left out because of their names. Throws InputError naming `source` if the text is no JSON of
// benchmarks.
nlohmann::json each_row(std::string text, const std::string& source, size_t& left_out,
                        const std::function<void(const SuiteRow&)>& take) {
  refuse_other_text(text, source);
  const auto count = [&](const std::string& path) {
    const bool counter = may_repeat(path);
    left_out += counter ? 1 : 0;
    return counter;
  };
  const nlohmann::json json = as_google_json(parse_json(std::move(text), source, count), source);
  const nlohmann::json& rows = json["benchmarks"];
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].is_object()) take(row_from(rows[i], fmt::format("[{}] benchmarks[{}]", source, i)));
  }
  const auto context = json.find("context");
  return context != json.end() && context->is_object() ? *context : nlohmann::json::object();
}

class Builder {
 public:
  explicit Builder(std::string source) { suite_.source = std::move(source); }

  void read(std::string text, const std::string& source) {
    nlohmann::json context = each_row(std::move(text), source, left_out_,
                                      [&](const SuiteRow& row) { add(row, source); });
    if (suite_.context.empty()) suite_.context = std::move(context);
    ++row_files_;
  }

  // Sorts interleaved samples and notes irregularities.
  Suite finish() {
    size_t repeated = 0;
    for (Benchmark& benchmark : suite_.benchmarks) {
      bool twice = false;
      for (auto& [name, samples] : benchmark.metrics) twice |= put_in_order(samples);
      if (twice) ++repeated;
      if (!benchmark.metrics.empty()) benchmark.aggregates.clear();
    }
    note(repeated, "benchmarks repeat a name and repetition: counted as further repetitions");
    note(renamed_, "benchmarks share their name with another: the second is \"NAME #2\"");
    note(left_out_,
         "counters have the name of a field of Google Benchmark, such as iterations: left out");
    return std::move(suite_);
  }

 private:
  void note(size_t count, const char* what) {
    if (count > 0) suite_.notes.push_back(fmt::format("{}: {} {}", suite_.source, count, what));
  }

  static bool put_in_order(std::vector<Sample>& samples) {
    const auto before = [](const Sample& a, const Sample& b) { return a.index < b.index; };
    if (!std::is_sorted(samples.begin(), samples.end(), before)) {
      std::stable_sort(samples.begin(), samples.end(), before);
    }
    const auto same = [](const Sample& a, const Sample& b) { return a.index == b.index; };
    if (std::adjacent_find(samples.begin(), samples.end(), same) == samples.end()) return false;
    for (size_t i = 0; i < samples.size(); ++i) samples[i].index = static_cast<int64_t>(i);
    return true;
  }

  void add(const SuiteRow& row, const std::string& source) {
    const bool is_aggregate = row.run_type == "aggregate" || !row.aggregate_name.empty();
    const std::string_view ending =
        is_aggregate || !row.has_run_type ? aggregate_ending(row.name) : "";
    if (is_aggregate || !ending.empty()) {
      const std::string base = row.name.substr(0, row.name.size() - ending.size());
      const std::string kind(ending.empty() ? ending : ending.substr(1));
      add_aggregate(row, row.run_name.empty() ? base : row.run_name,
                    row.aggregate_name.empty() ? kind : row.aggregate_name, source);
      return;
    }
    add_sample(row, of(row, row.run_name.empty() ? row.name : row.run_name), source);
  }

  void add_aggregate(const SuiteRow& row, const std::string& name, const std::string& kind,
                     const std::string& source) {
    const bool median = kind == "median", mean = kind == "mean" || kind.empty();
    if ((!median && !mean) || row.aggregate_unit == "percentage" || !row.real_time) return;
    Benchmark& benchmark = of(row, name);
    if (median || !benchmark.aggregates.contains("real_time")) {
      benchmark.aggregates["real_time"] = *row.real_time * seconds(row, source);
    }
  }

  // Returns the benchmark of a row. One name may denote several benchmarks, which differ in their
  // indices.
  Benchmark& of(const SuiteRow& row, const std::string& name) {
    const Place place{row.family_index, row.instance_index};
    std::string unique = name;
    for (int copy = 2;; ++copy) {
      const auto [it, is_new] = places_.try_emplace(unique, Found{suite_.benchmarks.size(), place});
      if (is_new) {
        if (copy > 2) ++renamed_;
        suite_.benchmarks.emplace_back().name = unique;
      }
      const Place& known = it->second.place;
      const bool has_indices = place.family >= 0 && known.family >= 0 && row_files_ == 0;
      if (!has_indices || (place.family == known.family && place.instance == known.instance)) {
        return suite_.benchmarks[it->second.index];
      }
      unique = fmt::format("{} #{}", name, copy);
    }
  }

  static double seconds(const SuiteRow& row, const std::string& source) {
    if (row.time_unit.empty()) return 1e-9;
    if (const auto unit = seconds_per_unit(row.time_unit)) return *unit;
    throw InputError(
        fmt::format("[{}] {}: unknown time_unit \"{}\"", source, row.name, row.time_unit));
  }

  static std::string wrong_with(const SuiteRow& row) {
    if (row.error) return row.error_message.empty() ? "error without a message" : row.error_message;
    if (!row.real_time) return "real_time is missing or not finite";
    if (*row.real_time < 0)
      return fmt::format("the clock went backwards: real_time {}", *row.real_time);
    return *row.real_time == 0 ? "real_time is 0: nothing was timed" : "";
  }

  void add_sample(const SuiteRow& row, Benchmark& benchmark, const std::string& source) {
    if (row.skipped && !row.error) {
      benchmark.skipped = row.skip_message.empty() ? row.error_message : row.skip_message;
      if (benchmark.skipped.empty()) benchmark.skipped = "skipped";
      return;
    }
    if (const std::string wrong = wrong_with(row); !wrong.empty()) {
      if (benchmark.error.empty()) benchmark.error = wrong;
      return;
    }
    const double unit = seconds(row, source);
    std::vector<Sample>& times = benchmark.metrics["real_time"];
    const int64_t index =
        row.repetition_index >= 0 ? row.repetition_index : static_cast<int64_t>(times.size());
    times.push_back({index, *row.real_time * unit});
    if (row.cpu_time && *row.cpu_time > 0) {
      benchmark.metrics["cpu_time"].push_back({index, *row.cpu_time * unit});
    }
    for (const auto& [name, value] : row.counters)
      benchmark.metrics[name].push_back({index, value});
    benchmark.most_iterations = std::max(benchmark.most_iterations, row.iterations);
  }

  struct Place {
    int64_t family = -1, instance = -1;
  };
  struct Found {
    size_t index;
    Place place;
  };
  Suite suite_;
  std::unordered_map<std::string, Found> places_;
  size_t renamed_ = 0, left_out_ = 0;
  int row_files_ = 0;  // indices are unique within one file only
};

// Returns the files of a folder that may hold benchmarks. Their samples are in the same folder.
std::vector<std::string> bench_files(const std::string& folder) {
  std::vector<std::string> paths;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    const bool ours = name == "summary.json" || name == "plan.json";
    if (entry.is_regular_file() && name.ends_with(".json") && !ours) {
      paths.push_back(entry.path().string());
    }
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

Suite read_folder(const std::string& folder) {
  Builder builder(folder);
  std::vector<std::string> samples;
  bool any = false;
  for (const std::string& path : bench_files(folder)) {
    std::string text = read_text(path, kMaxBytes);
    if (text.find("\"benchmarks\"") == std::string::npos) continue;
    builder.read(std::move(text), path);
    samples.push_back(path.substr(0, path.size() - 5) + ".samples.jsonl");
    any = true;
  }
  if (!any) throw InputError(fmt::format("{} holds no Google Benchmark JSON", folder));
  Suite suite = builder.finish();
  for (const std::string& path : samples) {
    if (fs::exists(path)) take_samples(suite, read_text(path, kMaxBytes), path);
  }
  return suite;
}

}  // namespace

Suite suite_from_text(std::string text, const std::string& source) {
  Builder builder(source);
  builder.read(std::move(text), source);
  return builder.finish();
}

void take_samples(Suite& suite, const std::string& text, const std::string& source) {
  std::map<std::string, std::vector<Sample>> medians;
  for (const SampleLine& line : samples_from_text(text, source)) {
    std::vector<Sample>& mine = medians[line.name];
    const auto index = static_cast<int64_t>(mine.size());
    if (!line.seconds.empty()) mine.push_back({index, median(line.seconds)});
  }
  for (Benchmark& benchmark : suite.benchmarks) {
    const auto found = medians.find(benchmark.name);
    if (found == medians.end() || found->second.empty()) continue;
    suite.launches = suite.launches || found->second.size() > 1;
    benchmark.metrics["real_time"] = std::move(found->second);
    medians.erase(found);
  }
  std::erase_if(medians, [](const auto& entry) { return entry.second.empty(); });
  if (!medians.empty()) {
    suite.notes.push_back(fmt::format("{}: samples of {} names that are in no benchmark file",
                                      source, medians.size()));
  }
}

Suite read_suite(const std::string& path) {
  if (fs::is_directory(path)) return read_folder(path);
  return suite_from_text(read_text(path, kMaxBytes), path);
}

}  // namespace howmany::reports
