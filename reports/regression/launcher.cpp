// SPDX-License-Identifier: Apache-2.0
#include "reports/regression/launcher.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <filesystem>
#include <set>

#include "core/base/process.h"
#include "core/base/temporary.h"
#include "core/base/text/files.h"
#include "reports/results/record.h"

namespace howmany::reports {
namespace {

namespace fs = std::filesystem;
constexpr size_t kMaxFilterBytes = 60'000;  // an argument holds at most 128 KiB

std::string exactly(const std::vector<std::string>& names) {
  std::string pattern = "^(";
  for (const std::string& name : names) {
    if (pattern.size() > 2) pattern += '|';
    for (const char c : name) {
      if (std::string_view(".[]{}()*+?^$|\\").find(c) != std::string_view::npos) pattern += '\\';
      pattern += c;
    }
  }
  return pattern + ")$";
}

std::string temporary_file() {
  std::string name = (temporary_directory() / "howmany-gate-XXXXXX").string();
  const int fd = ::mkstemp(name.data());
  if (fd < 0) throw InputError("cannot write to " + temporary_directory().string());
  ::close(fd);
  return name;
}

void append(Suite& suite, Suite more) {
  if (suite.context.empty()) suite.context = std::move(more.context);
  for (Benchmark& benchmark : more.benchmarks) suite.benchmarks.push_back(std::move(benchmark));
}

}  // namespace

std::vector<std::string> split_command(const std::string& option, const std::string& text) {
  std::vector<std::string> words;
  std::string word;
  bool in_word = false;
  char quote = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0 && c == quote) {
      quote = 0;
    } else if (c == '\\' && quote != '\'' && i + 1 < text.size()) {
      word += text[++i];
      in_word = true;
    } else if (quote != 0) {
      word += c;
    } else if (c == '"' || c == '\'') {
      quote = c;
      in_word = true;
    } else if (c == ' ' || c == '\t' || c == '\n') {
      if (in_word) words.push_back(std::exchange(word, ""));
      in_word = false;
    } else {
      word += c;
      in_word = true;
    }
  }
  if (quote != 0) throw InputError(fmt::format("{}: a quote is not closed in {}", option, text));
  if (in_word) words.push_back(word);
  if (words.empty()) throw InputError(fmt::format("{}: the command is empty", option));
  return words;
}

std::string find_command(const std::string& side, const std::string& name) {
  std::string program = find_in_path(name);
  if (program.empty()) throw InputError(fmt::format("--{}: there is no program {}", side, name));
  return program;
}

Launcher::Launcher(std::string side, std::vector<std::string> argv, LaunchOptions options)
    : side_(std::move(side)), argv_(std::move(argv)), options_(options) {
  argv_[0] = find_command(side_, argv_[0]);
  output_ = temporary_file();
}

Launcher::~Launcher() { ::unlink(output_.c_str()); }

std::vector<std::string> Launcher::command(const Group& group) const {
  std::vector<std::string> argv = argv_;
  if (options_.plain) return argv;
  argv.push_back("--benchmark_out=" + output_);
  argv.emplace_back("--benchmark_out_format=json");
  argv.push_back(fmt::format("--benchmark_repetitions={}", options_.repetitions));
  argv.emplace_back("--benchmark_report_aggregates_only=false");
  if (interleave_) argv.emplace_back("--benchmark_enable_random_interleaving=true");
  argv.push_back(group.iterations > 0
                     ? fmt::format("--benchmark_min_time={}x", group.iterations)
                     : fmt::format("--benchmark_min_time={}", options_.min_seconds));
  if (!group.names.empty()) argv.push_back("--benchmark_filter=" + exactly(group.names));
  return argv;
}

Suite Launcher::start(const Group& group) {
  if (::truncate(output_.c_str(), 0) != 0) throw InputError("cannot write " + output_);
  const ProcessResult ended =
      run_command({.argv = command(group), .timeout_seconds = options_.timeout_seconds});
  wall_seconds_ += ended.seconds;
  if (ended.how == ProcessResult::How::kInterrupted) return {};
  if (!ended.ok()) throw LaunchError(fmt::format("{}: {} {}", side_, argv_[0], ended.describe()));
  std::string text = read_text(output_, int64_t{512} << 20);
  if (text.empty()) text = ended.out;
  try {
    return suite_from_text(std::move(text), side_);
  } catch (const InputError& error) {
    throw LaunchError(fmt::format("{}: {} left no results: {}", side_, argv_[0], error.what()));
  }
}

Suite Launcher::run() {
  wall_seconds_ = 0;
  Suite all;
  for (const Group& group : groups_) {
    append(all, start(group));
    if (interrupted()) return {};
  }
  all.source = side_;
  return all;
}

bool Launcher::runs_just(const Group& group) {
  try {
    const Suite suite = start(group);
    return suite.benchmarks.size() == group.names.size() &&
           std::all_of(suite.benchmarks.begin(), suite.benchmarks.end(), [&](const Benchmark& b) {
             const bool counted = group.iterations == 0 || b.most_iterations == group.iterations;
             return counted &&
                    std::find(group.names.begin(), group.names.end(), b.name) != group.names.end();
           });
  } catch (const LaunchError&) {
    return false;
  }
}

Suite Launcher::calibrate() {
  Suite suite;
  try {
    suite = run();
  } catch (const LaunchError&) {
    if (options_.plain || interrupted()) throw;
    interleave_ = false;  // versions before 1.6 lack the flag
    suite = run();
  }
  if (interrupted()) return suite;
  if (suite.benchmarks.empty()) {
    throw LaunchError(fmt::format("{}: {} ran no benchmark", side_, argv_[0]));
  }
  for (const Benchmark& benchmark : suite.benchmarks) names_.push_back(benchmark.name);
  if (!options_.plain && names_.size() > 1) can_choose_ = runs_just({0, {names_[0]}});
  return suite;
}

bool Launcher::fix_iterations(const Suite& calibrated) {
  if (!can_choose_ && names_.size() > 1) return false;
  iterations_.clear();
  for (const Benchmark& benchmark : calibrated.benchmarks) {
    const auto n = static_cast<uint64_t>(std::max<int64_t>(1, benchmark.most_iterations));
    iterations_[benchmark.name] = static_cast<int64_t>(std::bit_floor(n));
  }
  make_groups();
  const bool able = !options_.plain && std::all_of(groups_.begin(), groups_.end(),
                                                   [&](const Group& g) { return runs_just(g); });
  if (!able) {
    iterations_.clear();
    make_groups();
  }
  return able;
}

void Launcher::choose(const std::vector<std::string>& names) {
  chosen_.clear();
  std::copy_if(names_.begin(), names_.end(), std::back_inserter(chosen_), [&](const auto& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  });
  idle_ = chosen_.empty();
  make_groups();
}

void Launcher::make_groups() {
  groups_.clear();
  if (idle_) return;
  if (iterations_.empty() && (!can_choose_ || chosen_.empty())) {
    groups_.push_back({});
    return;
  }
  std::map<int64_t, Group> by_iterations;
  for (const std::string& name : chosen_.empty() ? names_ : chosen_) {
    const auto known = iterations_.find(name);
    const int64_t iterations = known == iterations_.end() ? 0 : known->second;
    Group& group = by_iterations[iterations];
    group.iterations = iterations;
    group.names.push_back(name);
  }
  for (auto& [iterations, group] : by_iterations) {
    if (exactly(group.names).size() > kMaxFilterBytes) {
      groups_ = {{}};
      return;
    }
    groups_.push_back(std::move(group));
  }
}

Side::Side(std::string name, const std::vector<std::vector<std::string>>& commands,
           const LaunchOptions& options)
    : name_(std::move(name)) {
  for (const auto& command : commands) {
    programs_.push_back(std::make_unique<Launcher>(name_, command, options));
  }
}

Suite Side::each(Suite (Launcher::*start)()) {
  Suite all;
  all.source = name_;
  all.launches = true;
  wall_seconds_ = 0;
  std::set<std::string> names;
  for (const auto& program : programs_) {
    Suite one = ((*program).*start)();
    wall_seconds_ += program->last_wall_seconds();
    if (all.context.empty()) all.context = std::move(one.context);
    for (Benchmark& benchmark : one.benchmarks) {
      if (!names.insert(benchmark.name).second) {
        throw LaunchError(
            fmt::format("{}: two programs have a benchmark {}", name_, benchmark.name));
      }
      all.benchmarks.push_back(std::move(benchmark));
    }
  }
  return all;
}

Suite Side::calibrate() { return each(&Launcher::calibrate); }
Suite Side::run() { return each(&Launcher::run); }

bool Side::fix_iterations(const Suite& calibrated) {
  return std::all_of(programs_.begin(), programs_.end(),
                     [&](const auto& program) { return program->fix_iterations(calibrated); });
}

void Side::choose(const std::vector<std::string>& names) {
  for (const auto& program : programs_) program->choose(names);
}

}  // namespace howmany::reports
