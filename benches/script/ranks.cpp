// SPDX-License-Identifier: Apache-2.0
#include "benches/script/ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/schema/metrics.h"
#include "core/base/statistics.h"
#include "core/base/text/files.h"
#include "core/base/text/json.h"

namespace howmany::benches {
namespace {

namespace fs = std::filesystem;
constexpr int64_t kMostRanks = 4096;
constexpr int64_t kMostSamples = int64_t{1} << 40;

struct Step {
  double seconds = 0, wait = 0, backward = 0, optimizer = 0;
  int64_t samples = 0;
};

// The record of one rank.
struct Record {
  int64_t rank = 0, world = 1, threads = 0;
  std::string parallel, backend, device, failed;
  double gradient_bytes = 0, peak_bytes = 0;
  bool started = false, ended = false, complete = false, loader = true;
  int64_t first = 0, last = 0;  // timed
  std::map<std::string, double> ddp;
  std::vector<Step> steps;
};

double seconds(const JsonNode& node) {
  const double value = node.number();
  if (value < 0) node.fail("is negative");
  return value;
}

void take_start(const JsonNode& line, Record& record) {
  record.started = true;
  record.rank = line.at("rank").integer_between(0, kMostRanks);
  record.world = line.at("world").integer_between(1, kMostRanks);
  record.threads = line.at("threads").integer_between(1, kMostRanks);
  record.parallel = line.at("parallel").string();
  record.backend = line.at("backend").string();
  record.device = line.at("device").string();
  record.gradient_bytes = seconds(line.at("gradient_bytes"));
}

void take_step(const JsonNode& line, Record& record) {
  record.steps.push_back({seconds(line.at("s")), seconds(line.at("wait_s")),
                          seconds(line.at("backward_s")), seconds(line.at("optimizer_s")),
                          line.at("samples").integer_between(0, kMostSamples)});
}

void take_end(const JsonNode& line, Record& record) {
  record.ended = true;
  record.complete = line.at("complete").boolean();
  record.loader = line.at("loader").boolean();
  record.peak_bytes = seconds(line.at("peak_bytes"));
  if (!record.complete) return;
  const auto count = static_cast<int64_t>(record.steps.size());
  record.first = line.at("first").integer_between(0, count - 1);
  record.last = line.at("last").integer_between(record.first, count - 1);
  if (const auto ddp = line.find("ddp"))
    for (const char* key : {"forward_s", "backward_s", "communication_s", "overlap_s"})
      if (const auto value = ddp->find(key)) record.ddp[key] = seconds(*value);
}

Record read_record(const std::string& path) {
  Record record;
  const std::string text = read_text(path);
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const nlohmann::json json = parse_json(text.substr(at, end - at), path);
    const JsonNode line(json, path);
    const std::string kind = line.at("kind").string();
    if (kind == "start") take_start(line, record);
    if (kind == "step") take_step(line, record);
    if (kind == "end") take_end(line, record);
    if (kind == "failed") record.failed = line.at("why").string();
    at = end + 1;
  }
  return record;
}

std::vector<Record> read_records(const std::string& folder) {
  std::vector<Record> records;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("rank") && name.ends_with(".jsonl"))
      records.push_back(read_record(entry.path()));
  }
  std::ranges::sort(records, {}, &Record::rank);
  return records;
}

void refuse_failed(const std::vector<Record>& records) {
  for (const Record& record : records)
    HM_ENSURE(record.failed.empty(), "[script] the hook failed in rank {}: {}", record.rank,
              record.failed);
}

void refuse_incomplete(const std::vector<Record>& records, const ScriptEnd& ended) {
  HM_ENSURE(!records.empty() || ended.ok, "[script] before its first step the command {}",
            ended.how);
  HM_ENSURE(!records.empty(),
            "[script] no step of a PyTorch optimizer was seen. Needed: torch 2.5 or later without "
            "TORCH_DEVICE_BACKEND_AUTOLOAD=0, or python -m howmany_hook SCRIPT");
  for (const Record& record : records) {
    HM_ENSURE(record.ended,
              "[script] rank {} took its first step, but no measurement was "
              "completed; the command {}",
              record.rank, ended.how);
    HM_ENSURE(record.complete,
              "[script] the script ended by itself after {} steps, before enough were timed; the "
              "command {}. Give it more data or epochs",
              record.steps.size(), ended.how);
  }
}

// Ranks are in order. Every rank of the group must have recorded the same steps, once.
void refuse_other_world(const std::vector<Record>& records, int devices) {
  const Record& first = records.front();
  const auto count = static_cast<int64_t>(records.size());
  HM_ENSURE(first.world == devices,
            "[script] the script formed a group of {} rank{}, not of {}; {}", first.world,
            first.world == 1 ? "" : "s", devices,
            first.world == 1 ? "does it call init_process_group?"
                             : "is the number written in the script?");
  HM_ENSURE(count == first.world, "[script] {} of {} ranks recorded their steps", count,
            first.world);
  int64_t rank = 0;
  for (const Record& record : records)
    HM_ENSURE(record.rank == rank++ && record.first == first.first && record.last == first.last,
              "[script] the ranks recorded different steps");
}

// Mean over the timed steps of a rank.
double mean_of(const Record& record, double Step::*member) {
  double sum = 0;
  for (int64_t i = record.first; i <= record.last; ++i)
    sum += record.steps[static_cast<size_t>(i)].*member;
  return sum / static_cast<double>(record.last - record.first + 1);
}

// Mean over ranks of the share of a step.
double share_of(const std::vector<Record>& records, double Step::*member) {
  double sum = 0;
  for (const Record& record : records)
    sum += mean_of(record, member) / mean_of(record, &Step::seconds);
  return sum / static_cast<double>(records.size());
}

std::map<std::string, double> counters_of(const std::vector<Record>& records) {
  const Record& first = records.front();
  std::map<std::string, double> counters = {
      {metric::kGradientBytes, first.gradient_bytes},
      {metric::kWarmupSteps, static_cast<double>(first.first)},
      {metric::kRanks, static_cast<double>(records.size())}};
  if (first.device == "cpu") {  // on a GPU, the host's times are not those of the work
    counters[metric::kBackwardFraction] = share_of(records, &Step::backward);
    counters[metric::kOptimizerFraction] = share_of(records, &Step::optimizer);
  }
  if (first.loader) counters[metric::kDataWaitFraction] = share_of(records, &Step::wait);
  double peak = 0;
  for (const Record& record : records) peak = std::max(peak, record.peak_bytes);
  counters[metric::kPeakBytesPerDevice] = peak;
  for (const auto& [key, value] : first.ddp) counters["ddp_" + key] = value;
  return counters;
}

}  // namespace

ScriptSteps read_ranks(const std::string& folder, int devices, const ScriptEnd& ended) {
  const std::vector<Record> records = read_records(folder);
  refuse_failed(records);
  refuse_incomplete(records, ended);
  refuse_other_world(records, devices);
  const Record& first = records.front();
  ScriptSteps steps;
  steps.ranks = static_cast<int>(records.size());
  steps.parallel = first.parallel;
  steps.backend = first.backend;
  steps.threads = first.threads;
  steps.counters = counters_of(records);
  std::vector<double> batches;
  for (int64_t i = first.first; i <= first.last; ++i) {
    double slowest = 0;
    int64_t samples = 0;
    for (const Record& record : records) {
      const Step& step = record.steps[static_cast<size_t>(i)];
      slowest = std::max(slowest, step.seconds);
      samples += step.samples;
    }
    steps.seconds.push_back(slowest);
    batches.push_back(static_cast<double>(samples));
  }
  steps.global_batch = static_cast<int64_t>(std::llround(quantile(batches, 0.5)));
  HM_ENSURE(steps.global_batch > 0,
            "[script] the batches do not show how many samples they have; give --samples-per-step");
  if (!first.loader) steps.flags.emplace_back("data wait not visible");
  return steps;
}

}  // namespace howmany::benches
