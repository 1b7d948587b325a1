// SPDX-License-Identifier: Apache-2.0
#include "reports/why/evidence.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/text/json.h"

namespace howmany::reports {
namespace {

constexpr size_t kMaxRanks = 100'000, kMaxDetailSteps = 1000, kMaxOfAStep = 100'000;
constexpr double kMaxSeconds = 1e6, kMinStep = 1e-9, kMaxClock = 1e12, kMaxBytes = 1e18;
constexpr double kMaxCount = 1e12, kMaxRecording = 1e3;
constexpr double kResolution = 1e-5;  // seconds
constexpr int64_t kMaxCores = 1 << 20, kMaxTimed = 1 << 30;

constexpr std::pair<const char*, Mode> kModes[] = {{"synced", Mode::kSynced},
                                                   {"noop", Mode::kNoop},
                                                   {"alone", Mode::kAlone},
                                                   {"narrow", Mode::kNarrow},
                                                   {"bf16", Mode::kBf16}};

double number_within(const JsonNode& node, double low, double high) {
  const double value = node.number();
  if (value < low || value > high)
    node.fail(fmt::format("expected a number from {:g} to {:g}", low, high));
  return value;
}

// Returns 0 if the member is missing.
double up_to(const JsonNode& node, const char* key, double high) {
  const auto found = node.find(key);
  return found ? number_within(*found, 0, high) : 0;
}
double seconds_in(const JsonNode& node, const char* key) { return up_to(node, key, kMaxSeconds); }
bool flag_in(const JsonNode& node, const char* key) {
  const auto found = node.find(key);
  return found && found->boolean();
}
int cores_in(const JsonNode& node, const char* key) {
  const auto found = node.find(key);
  return found ? static_cast<int>(found->integer_between(0, kMaxCores)) : 0;
}

int steps_in(const JsonNode& node, const char* key) {
  const auto found = node.find(key);
  return found ? static_cast<int>(found->integer_between(0, kMaxTimed)) : 0;
}

std::vector<JsonNode> at_most(const JsonNode& list, size_t most) {
  std::vector<JsonNode> items = list.items();
  if (items.size() > most) list.fail(fmt::format("more than {} entries", most));
  return items;
}

// Returns the entries of an optional list.
std::vector<JsonNode> list_in(const JsonNode& node, const char* key, size_t most) {
  const auto found = node.find(key);
  return found ? at_most(*found, most) : std::vector<JsonNode>();
}

// Returns an entry such as ["data", at, seconds].
std::vector<JsonNode> triple(const JsonNode& node) {
  std::vector<JsonNode> items = node.items();
  if (items.size() != 3) node.fail("expected three values");
  return items;
}

RankTimes rank_times(const JsonNode& node) {
  RankTimes times;
  times.step = number_within(node.at("step_s"), kMinStep, kMaxSeconds);
  times.data = seconds_in(node, "data_s");
  times.epochs = seconds_in(node, "epochs_s");
  times.outside = seconds_in(node, "outside_s");
  times.backward = seconds_in(node, "backward_s");
  times.optimizer = seconds_in(node, "optimizer_s");
  times.blocked = seconds_in(node, "blocked_s");
  return times;
}

Mode mode_from(const JsonNode& node) {
  const std::string text = node.string();
  for (const auto& [name, mode] : kModes)
    if (text == name) return mode;
  node.fail("unknown mode");
}

// Events of different streams of a GPU may be as much out of order.
double time_in_step(const JsonNode& node) {
  return std::max(0.0, number_within(node, -kResolution, kMaxSeconds));
}

Span span_from(const JsonNode& node) {
  const std::vector<JsonNode> items = triple(node);
  return {items[0].string(), time_in_step(items[1]), number_within(items[2], 0, kMaxSeconds)};
}

Bucket bucket_from(const JsonNode& node) {
  const std::vector<JsonNode> items = triple(node);
  Bucket bucket{number_within(items[0], 0, kMaxBytes), time_in_step(items[1]),
                time_in_step(items[2])};
  if (bucket.ended < bucket.at - kResolution) node.fail("it ends before it begins");
  bucket.ended = std::max(bucket.at, bucket.ended);
  return bucket;
}

DetailStep detail_step(const JsonNode& node) {
  DetailStep step;
  step.train = number_within(node.at("train_s"), 0, kMaxSeconds);
  step.backward = seconds_in(node, "backward_s");
  step.blocked = seconds_in(node, "blocked_s");
  step.began = up_to(node, "began_s", kMaxClock);
  for (const JsonNode& one : list_in(node, "spans", kMaxOfAStep))
    step.spans.push_back(span_from(one));
  for (const JsonNode& one : list_in(node, "buckets", kMaxOfAStep))
    step.buckets.push_back(bucket_from(one));
  return step;
}

DetailSteps detail_steps(const JsonNode& node, size_t ranks) {
  DetailSteps steps;
  steps.mode = mode_from(node.at("mode"));
  const JsonNode list = node.at("ranks");
  for (const JsonNode& one : at_most(list, kMaxRanks)) steps.ranks.push_back(detail_step(one));
  if (steps.ranks.size() != ranks) list.fail(fmt::format("expected {} ranks", ranks));
  return steps;
}

void add_arguments(const JsonNode& root, StepEvidence& e) {
  e.gpu = flag_in(root, "gpu");
  e.hosts = std::max(1, cores_in(root, "hosts"));
  e.timed = steps_in(root, "timed");
  e.cycle = steps_in(root, "cycle");
  e.ddp = flag_in(root, "ddp");
  e.recording = up_to(root, "recording", kMaxRecording);
  e.cores = cores_in(root, "cores");
  e.threads = cores_in(root, "threads");
  e.samples = up_to(root, "samples", kMaxCount);
  e.gradient_bytes = up_to(root, "gradient_bytes", kMaxBytes);
  if (root.find("workers")) e.workers = cores_in(root, "workers");
  e.persistent_workers = flag_in(root, "persistent_workers");
  e.loader_cpu = seconds_in(root, "loader_cpu_s");
  e.bucket_view = flag_in(root, "bucket_view");
  e.bucket_cap = up_to(root, "bucket_cap", kMaxBytes);
  e.own_hook = flag_in(root, "own_hook");
}

}  // namespace

StepEvidence evidence_from(const nlohmann::json& why, const std::string& source) {
  const JsonNode root(why, source);
  StepEvidence evidence;
  add_arguments(root, evidence);
  const JsonNode ranks = root.at("ranks");
  for (const JsonNode& one : at_most(ranks, kMaxRanks)) evidence.ranks.push_back(rank_times(one));
  if (evidence.ranks.empty()) ranks.fail("no rank");
  for (const JsonNode& one : list_in(root, "steps", kMaxDetailSteps))
    evidence.steps.push_back(detail_steps(one, evidence.ranks.size()));
  return evidence;
}

std::vector<const DetailSteps*> steps_of(const StepEvidence& evidence, Mode mode) {
  std::vector<const DetailSteps*> steps;
  for (const DetailSteps& one : evidence.steps)
    if (one.mode == mode) steps.push_back(&one);
  return steps;
}

}  // namespace howmany::reports
