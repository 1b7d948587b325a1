#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <utility>

#include "reports/files.h"
#include "reports/format.h"
#include "reports/json.h"
#include "reports/machine.h"
#include "reports/process.h"
#include "reports/scratch.h"
#include "reports/statistics.h"
#include "reports/workers.h"

namespace howmany {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kRunTimeout = 120;  // beyond the timed seconds
constexpr double kExpectedTrials = 5;
constexpr double kLeastSeconds = 0.4, kMostSeconds = 5;  // of timed batches in one run
// Of one run without a demand, as a share of the budget: shorter ones differ by more than their
// number makes good.
constexpr double kShare = 0.08, kMostOfMany = 1.5;
constexpr double kColdSeconds = 1;  // left for files not in memory

double counter(const BenchRow& row, const char* name, double otherwise = 0) {
  const auto it = row.counters.find(name);
  return it == row.counters.end() ? otherwise : it->second;
}

std::string unit_of(const std::string& counter) {
  if (counter.ends_with("_fraction")) return "ratio";
  if (counter.ends_with("bytes_per_s")) return "B/s";
  if (counter.ends_with("_per_s")) return "1/s";
  if (counter.ends_with("_s") || counter == "cpu_s_per_sample") return "s";
  return counter.find("bytes") != std::string::npos ? "bytes" : "";
}

// The rate of what takes `seconds` a batch, of `each` samples.
Metric rate_of(const std::vector<double>& seconds, double each) {
  Metric rate{each / mean(seconds), "1/s", {}, {}, static_cast<int64_t>(seconds.size()),
              "iterations"};
  const auto interval = mean_interval(seconds);
  if (interval && interval->low > 0) {
    rate.low = each / interval->high;
    rate.high = each / interval->low;
  }
  return rate;
}

// The last of that name. A row's name may go on where Google Benchmark adds to it, and so does the
// name of a paced run.
const SampleLine* line_of(const std::vector<SampleLine>& samples, const std::string& name) {
  const SampleLine* found = nullptr;
  for (const SampleLine& line : samples)
    if (name.starts_with(line.name) && !line.seconds.empty() &&
        (found == nullptr || line.name.size() >= found->name.size()))
      found = &line;
  return found;
}

Metric with_half_width(const BenchRow& row, const char* name, const char* unit) {
  Metric metric{counter(row, name), unit, {}, {}, 1, "iterations"};
  const double half = counter(row, (std::string(name) + "_half_width").c_str(), NAN);
  if (!std::isfinite(half)) return metric;
  metric.low = std::max(0.0, metric.value - half);
  metric.high = std::min(1.0, metric.value + half);
  return metric;
}

}  // namespace

Measurement measurement_of(const BenchRow& row, const std::vector<SampleLine>& samples) {
  Measurement m{"loader", "", {}, {}, {}};
  std::string rest = row.name.substr(std::min(row.name.find('/') + 1, row.name.size()));
  for (size_t part = 0; !rest.empty(); ++part) {
    const size_t end = std::min(rest.find('/'), rest.size());
    const std::string word = rest.substr(0, end);
    const size_t colon = part == 0 ? std::string::npos : word.find(':');
    if (colon != std::string::npos)
      m.parameters[word.substr(0, colon)] = word.substr(colon + 1);
    else
      m.name += (m.name.empty() ? "" : "/") + word;
    rest.erase(0, end + 1);
  }
  if (!row.error.empty()) m.flags.push_back("failed: " + row.error);
  for (const auto& [name, value] : row.counters)
    if (!name.ends_with("_half_width") && name != "samples")
      m.metrics[name] = {value, unit_of(name), {}, {}, 1, "runs"};
  const SampleLine* line = line_of(samples, row.name);
  const auto rate = row.counters.find("samples_per_s");
  if (line != nullptr && rate != row.counters.end())
    m.metrics["samples_per_s"] = rate_of(line->seconds, rate->second * mean(line->seconds));
  if (row.counters.contains("stall_fraction"))
    m.metrics["stall_fraction"] = with_half_width(row, "stall_fraction", "ratio");
  return m;
}

struct LoaderMeasuring::State {
  WorkersArguments arguments;
  std::string folder;
  LoaderResults results;
  Clock::time_point start = Clock::now();
  double overhead = 0;              // of a run beside its timed seconds, the last one's
  std::vector<std::string> python;  // options that make the bench as slow

  double left() const {
    return arguments.time_budget - std::chrono::duration<double>(Clock::now() - start).count();
  }

  void tell(const std::string& text) const {
    if (!arguments.quiet) fmt::print(stderr, "{}\n", text);
  }

  // How far the bench is with a folder of millions.
  void tell_listing(const std::string& line) const {
    const bool is_that = line.ends_with(" files listed\n") || line.ends_with(" files checked\n");
    if (is_that && !arguments.quiet) fmt::print(stderr, "{}", line);
  }

  std::vector<std::string> argv(const std::vector<std::string>& more, double seconds,
                                const BenchScratch& scratch) const {
    std::vector<std::string> all = {find_program("loader_bench"),
                                    "--data",
                                    arguments.data,
                                    "--batch",
                                    std::to_string(arguments.batch),
                                    "--prefetch",
                                    std::to_string(arguments.prefetch),
                                    "--image-size",
                                    std::to_string(arguments.image_size),
                                    "--seed",
                                    std::to_string(arguments.seed),
                                    "--budget-seconds",
                                    fmt::format("{:.3f}", seconds),
                                    "--samples",
                                    scratch.samples,
                                    "--benchmark_out=" + scratch.bench,
                                    "--benchmark_out_format=json"};
    all.insert(all.end(), python.begin(), python.end());
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  // Runs the bench and keeps what it told. A row that failed is kept as such; nothing is returned
  // when the bench died or was interrupted.
  std::vector<BenchRow> run(const std::vector<std::string>& more, double seconds,
                            std::string& why) {
    const BenchScratch scratch(folder);
    Command command{.argv = argv(more, seconds, scratch),
                    .timeout_seconds = 10 * seconds + kRunTimeout};
    command.on_stderr = [this, line = std::string()](std::string_view text) mutable {
      if (arguments.verbose) return fmt::print(stderr, "{}", text);
      for (const char c : text) {
        line += c;
        if (c == '\n') tell_listing(std::exchange(line, {}));
      }
    };
    const Ended ended = run_command(command);
    if (ended.how == Ended::How::kInterrupted) results.interrupted = true;
    if (ended.how == Ended::How::kExited && ended.code == 2) throw InputError(ended.last_line());
    overhead = std::max(0.0, ended.seconds - seconds);
    std::vector<BenchRow> rows = read(scratch, why);
    if (rows.empty() && why.empty()) why = "loader_bench " + ended.describe();
    return rows;
  }

  std::vector<BenchRow> read(const BenchScratch& scratch, std::string& why) {
    std::vector<BenchRow> rows;
    try {
      if (std::filesystem::exists(scratch.bench)) {
        BenchFile file = read_bench(scratch.bench);
        if (results.context.empty()) results.context = file.context;
        rows = std::move(file.rows);
      }
      if (std::filesystem::exists(scratch.samples))
        for (SampleLine& line : read_samples(scratch.samples))
          results.samples.push_back(std::move(line));
    } catch (const InputError& error) {
      why = error.what();
      return {};
    }
    results.rows.insert(results.rows.end(), rows.begin(), rows.end());
    write();
    return rows;
  }

  // loader.json and loader.samples.jsonl of the folder.
  void write() const {
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const BenchRow& row : results.rows) rows.push_back(nlohmann::ordered_json(row.json));
    std::string lines;
    for (const SampleLine& line : results.samples) lines += dump_json_line(line.json);
    write_text(folder + "/loader.samples.jsonl", lines);
    write_text(folder + "/loader.json",
               dump_json({{"context", results.context}, {"benchmarks", rows}}));
  }

  double short_seconds() const {
    return std::clamp(kShare * arguments.time_budget, kLeastSeconds, kMostOfMany);
  }

  // With a demand each number is measured once, free and paced, and for longer.
  double seconds_for_trial(const WorkersFacts& facts, bool again) const {
    const bool paced = facts.asked.demand > 0 && !again;
    const double trials = !facts.wanted.empty() ? static_cast<double>(facts.wanted.size())
                          : paced               ? kExpectedTrials
                                                : 1;
    const double still = std::max(1.0, trials - static_cast<double>(facts.points.size()));
    const double room = left() / (paced ? 2 * still + 1 : still) - overhead;
    return std::clamp(room, kLeastSeconds, paced ? kMostSeconds : short_seconds());
  }

  bool will_measure_cold(const WorkersFacts& facts) const {
    return results.context.contains("loader_format") && facts.probes.cold_error.empty();
  }

  // What is measured again only makes surer: whole runs, and the cold epoch comes first.
  bool has_time(const WorkersFacts& facts, bool again) const {
    const double cold = will_measure_cold(facts) ? kColdSeconds + overhead : 0;
    const double needed = again ? short_seconds() + cold : kLeastSeconds;
    return facts.points.empty() || left() >= overhead + needed;
  }

  WorkersPoint measure(const WorkersFacts& facts, int workers, bool again) {
    WorkersPoint point;
    point.workers = workers;
    const double seconds = seconds_for_trial(facts, again);
    std::vector<std::string> more = {"--workers", std::to_string(workers),
                                     "--ranks",   std::to_string(facts.asked.devices),
                                     "--as",      facts.as};
    const std::vector<BenchRow> free = run(more, seconds, point.error);
    if (!take(free, point)) return point;
    const BenchRow& row = free[0];
    point.wait_p95_s = counter(row, "latency_p95_s");
    point.wait_p99_s = counter(row, "latency_p99_s");
    point.first_batch_s = counter(row, "first_batch_s");
    point.bytes_per_worker = counter(row, "bytes_per_worker");
    point.rate = measurement_of(row, results.samples).metrics["samples_per_s"];
    if (!(facts.asked.demand > 0) || again || results.interrupted) return point;
    more.insert(more.end(), {"--samples-per-second", fmt::format("{:.6g}", facts.asked.demand)});
    const std::vector<BenchRow> paced = run(more, seconds, point.error);
    if (!take(paced, point)) return point;
    point.stall = with_half_width(paced[0], "stall_fraction", "ratio");
    point.wait_p95_s = counter(paced[0], "latency_p95_s");
    point.wait_p99_s = counter(paced[0], "latency_p99_s");
    return point;
  }

  static bool take(const std::vector<BenchRow>& rows, WorkersPoint& point) {
    if (rows.size() == 1 && rows[0].error.empty()) return true;
    if (rows.size() == 1) point.error = rows[0].error;
    if (rows.size() > 1) point.error = "loader_bench told more than was asked";
    return false;
  }
};

LoaderMeasuring::LoaderMeasuring(const WorkersArguments& arguments, std::string folder)
    : state_(std::make_unique<State>()) {
  state_->arguments = arguments;
  state_->folder = std::move(folder);
}
LoaderMeasuring::~LoaderMeasuring() = default;

const LoaderResults& LoaderMeasuring::results() const { return state_->results; }

LoaderLimits LoaderMeasuring::limits() {
  const Ended ended =
      run_command({.argv = {find_program("loader_bench"), "--limits"}, .timeout_seconds = 30});
  if (!ended.ok()) throw InputError("loader_bench --limits " + ended.describe());
  return limits_from_json(parse_json(ended.out, "loader_bench --limits"), "loader_bench --limits");
}

void LoaderMeasuring::probe(WorkersFacts& facts) {
  State& s = *state_;
  s.tell("probing one worker, the loader, the cores and the files");
  std::string why;
  const double seconds = std::clamp(s.arguments.time_budget / 40, 0.1, 2.0);
  const std::vector<BenchRow> rows = s.run({"--probe", "--as", s.arguments.as}, seconds, why);
  s.overhead = 1;
  if (s.results.interrupted) return;
  if (rows.empty()) throw std::runtime_error(why);
  BenchFile file;
  file.rows = rows;
  facts.probes = probes_from(file, s.results.samples);
  const auto files = s.results.context.find("loader_files");
  if (files != s.results.context.end() && files->is_string())
    facts.files = std::atof(files->get<std::string>().c_str());
}

void LoaderMeasuring::add_python(WorkersFacts& facts, PythonCost cost) {
  facts.python = std::move(cost);
  if (!facts.python.measured()) {
    state_->tell(fmt::format("Python's own cost is left out: {}", facts.python.why_not));
    return;
  }
  PythonCost& python = facts.python;
  python.more_s = python.sample_s > 0 ? std::max(0.0, python.sample_s - facts.probes.sample_s)
                                      : python.batch_s / static_cast<double>(facts.asked.batch);
  slow_down(facts.probes, python.more_s);
  state_->python = {"--more-us", fmt::format("{:.0f}", 1e6 * python.more_s), "--worker-start",
                    fmt::format("{:.3f}", python.worker_start_s())};
}

void LoaderMeasuring::measure_points(WorkersFacts& facts) {
  State& s = *state_;
  while (const auto workers = next_trial(facts)) {
    const bool again = std::ranges::count(facts.points, *workers, &WorkersPoint::workers) > 0;
    if (!s.has_time(facts, again)) {
      s.results.out_of_time = !again;
      return;
    }
    WorkersPoint point = s.measure(facts, *workers, again);
    if (s.results.interrupted) return;
    const std::string stall =
        point.stall ? fmt::format(", {:.1f} % stall", 100 * point.stall->value) : "";
    s.tell(point.error.empty() ? fmt::format("{} workers: {} samples/s{} ({} left)", *workers,
                                             format_count(point.rate.value), stall,
                                             format_seconds(std::max(0.0, std::round(s.left()))))
                               : fmt::format("{} workers: failed: {}", *workers, point.error));
    add_run(facts.points, std::move(point));
  }
}

void LoaderMeasuring::measure_cold(WorkersFacts& facts, int workers) {
  State& s = *state_;
  if (!s.will_measure_cold(facts) || s.left() < kColdSeconds) return;
  std::string why;
  const std::vector<BenchRow> rows =
      s.run({"--workers", std::to_string(workers), "--ranks", std::to_string(facts.asked.devices),
             "--cache", "cold", "--as", facts.as},
            std::clamp(s.left() - s.overhead, kLeastSeconds, kMostSeconds), why);
  if (rows.size() != 1 || !rows[0].error.empty()) return;
  facts.cold_rate = counter(rows[0], "samples_per_s");
  facts.cold_workers = workers;
}

}  // namespace howmany
