// SPDX-License-Identifier: Apache-2.0
#include "benches/script/record.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/error.h"
#include "core/base/schema/metrics.h"
#include "core/base/text/files.h"
#include "core/base/text/json.h"

namespace howmany::benches {
namespace {

namespace fs = std::filesystem;
constexpr int64_t kMostRanks = 4096, kMostPretended = 16'384;
constexpr int64_t kMostTurns = 1 << 20;
constexpr int64_t kMostSamples = int64_t{1} << 40;
constexpr std::pair<const char*, const char*> kMemory[] = {{"parameters", metric::kParameterBytes},
                                                           {"gradients", metric::kGradientBytes},
                                                           {"optimizer", metric::kOptimizerBytes},
                                                           {"peak", metric::kPeakBytesPerDevice},
                                                           {"reserved", metric::kReservedBytes}};

double not_negative(const JsonNode& node) {
  const double value = node.number();
  if (value < 0) node.fail("is negative");
  return value;
}

void take_start(const JsonNode& line, RankRecord& record) {
  record.rank = line.at("rank").integer_between(0, kMostRanks);
  record.world = line.at("world").integer_between(1, kMostPretended);
  record.threads = line.at("threads").integer_between(1, kMostRanks);
  record.parallel = line.at("parallel").string();
  record.backend = line.at("backend").string();
  record.device = line.at("device").string();
  if (const auto torch = line.find("torch")) record.torch = torch->string();
  if (const auto host = line.find("host")) record.host = host->string();
  if (const auto count = line.find("parameters"))
    record.parameters = count->integer_between(0, kMostSamples);
}

std::vector<JsonNode> three(const JsonNode& node) {
  std::vector<JsonNode> members = node.items();
  if (members.size() != 3) node.fail("needs three members");
  return members;
}

void take_detail(const JsonNode& line, RankRecord& record) {
  RankDetail detail{.step = static_cast<int64_t>(record.steps.size()) - 1,
                    .mode = line.at("mode").string()};
  detail.began = line.at("began_s").number();
  detail.own = not_negative(line.at("own_s"));
  for (const JsonNode& span : line.at("spans").items()) {
    const std::vector<JsonNode> members = three(span);
    detail.spans.push_back({members[0].string(), members[1].number(), not_negative(members[2])});
  }
  for (const JsonNode& bucket : line.at("buckets").items()) {
    const std::vector<JsonNode> members = three(bucket);
    detail.buckets.push_back({not_negative(members[0]), members[1].number(), members[2].number()});
  }
  record.details.push_back(std::move(detail));
}

RankPhases phases_of(const JsonNode& node) {
  return {.data = not_negative(node.at("data_s")),
          .epochs = not_negative(node.at("epochs_s")),
          .outside = not_negative(node.at("outside_s")),
          .backward = not_negative(node.at("backward_s")),
          .optimizer = not_negative(node.at("optimizer_s")),
          .blocked = not_negative(node.at("blocked_s"))};
}

void take_step(const JsonNode& line, RankRecord& record) {
  RankStep step{not_negative(line.at("s")),
                not_negative(line.at("wait_s")),
                not_negative(line.at("backward_s")),
                not_negative(line.at("optimizer_s")),
                line.at("samples").integer_between(0, kMostSamples),
                line.at("forwarded").integer_between(0, kMostSamples)};
  step.phases = phases_of(line.at("phases"));
  record.steps.push_back(step);
  if (line.find("mode")) take_detail(line, record);
}

std::optional<double> figure(const JsonNode& line, const char* key) {
  const auto value = line.find(key);
  return value ? std::optional(not_negative(*value)) : std::nullopt;
}

void take_turn(const JsonNode& line, RankRecord& record) {
  const auto count = static_cast<int64_t>(record.steps.size());
  RankTurn turn;
  turn.round = line.at("round").integer_between(0, kMostTurns);
  turn.workers = line.at("workers").integer_between(0, kMostTurns);
  turn.prefetch = line.at("prefetch").integer_between(1, kMostTurns);
  turn.own = line.at("own").boolean();
  turn.first = line.at("first").integer_between(0, count);
  turn.last = line.at("last").integer_between(-1, count - 1);
  turn.batch_bytes = not_negative(line.at("batch_bytes"));
  turn.first_batch_s = figure(line, "first_batch_s");
  turn.alone_samples_per_s = figure(line, "alone_samples_per_s");
  turn.bytes_per_worker = figure(line, "bytes_per_worker");
  if (turn.first <= turn.last) record.turns.push_back(turn);
}

void take_collective(const JsonNode& line, RankRecord& record) {
  const int64_t last = static_cast<int64_t>(record.steps.size()) - 1;
  RankCollective one{.step = line.at("step").integer_between(0, last)};
  one.call.op = line.at("op").string();
  one.call.bytes = not_negative(line.at("bytes"));
  one.call.group.ranks = static_cast<int>(line.at("ranks").integer_between(1, kMostPretended));
  one.call.group.stride = static_cast<int>(line.at("stride").integer_between(1, kMostPretended));
  one.call.at = line.at("at_s").number();
  one.call.seconds = not_negative(line.at("s"));
  one.call.backward = line.at("backward").integer_between(-1, kMostRanks);
  if (const auto waited = line.find("waited_s")) one.call.waited = waited->number();
  record.collectives.push_back(one);
}

// Reports read the other members (reports/predict/counted.h).
void take_counted(const JsonNode& line, RankRecord& record) {
  record.counted = line.value();
  record.counted.erase("kind");
  if (const auto refused = line.find("refused")) {
    refused->string();
    return;
  }
  line.at("way").string();
  line.at("world").integer_between(1, kMostPretended);
  line.at("samples").integer_between(0, kMostSamples);
  line.at("kinds").items();
  line.at("order").items();
}

void take_cycles(const JsonNode& cycles, RankRecord& record) {
  int64_t least = record.first;
  for (const JsonNode& node : cycles.items()) {
    RankCycle cycle;
    cycle.first = node.at("first").integer_between(least, record.last);
    cycle.last = node.at("last").integer_between(cycle.first, record.last);
    least = cycle.last + 1;
    record.cycles.push_back(cycle);
  }
}

RankExchange exchange_of(const JsonNode& node) {
  RankExchange exchange;
  exchange.steps = node.at("steps").integer_between(0, kMostSamples);
  exchange.within = node.at("within").integer_between(0, kMostSamples);
  exchange.elsewhere = node.at("elsewhere").integer_between(0, kMostSamples);
  for (const JsonNode& one : node.at("sums").items())
    exchange.sums[one.at("step").integer()] = {one.at("gradients").string(),
                                               one.at("parameters").string()};
  return exchange;
}

void take_figures(const JsonNode& detail, RankRecord& record) {
  record.own_hook = detail.at("own_hook").boolean();
  record.cores = detail.at("cores").integer_between(1, kMostRanks);
  if (!detail.find("bucket_view")) return;
  record.ddp = {.bucket_view = detail.at("bucket_view").boolean(),
                .bucket_cap = not_negative(detail.at("bucket_cap"))};
}

void take_end(const JsonNode& line, RankRecord& record) {
  record.ended = true;
  record.complete = line.at("complete").boolean();
  record.loader = line.at("loader").boolean();
  record.peak_bytes = not_negative(line.at("peak_bytes"));
  record.gradient_bytes = not_negative(line.at("gradient_bytes"));
  record.optimizer_in_backward = line.at("optimizer_in_backward").boolean();
  record.by_backward = line.at("by_backward").boolean();
  if (const auto exchange = line.find("exchange")) record.exchange = exchange_of(*exchange);
  record.wrapped = figure(line, "wrapped");
  record.recording = not_negative(line.at("recording_s"));
  record.persistent_workers = line.at("persistent_workers").boolean();
  record.loader_cpu = figure(line, "loader_cpu_s").value_or(0);
  if (const auto workers = line.find("workers"))
    record.workers = workers->integer_between(0, kMostTurns);
  if (const auto detail = line.find("detail")) take_figures(*detail, record);
  if (!record.complete && !line.find("first")) return;
  const auto count = static_cast<int64_t>(record.steps.size());
  record.first = line.at("first").integer_between(0, count - 1);
  record.last = line.at("last").integer_between(record.first, count - 1);
  if (const auto cycles = line.find("cycles")) take_cycles(*cycles, record);
  record.alone = figure(line, "alone").value_or(0);
  if (!record.complete) return;
  if (const auto memory = line.find("memory"))
    for (const auto& [key, metric] : kMemory) record.memory[metric] = not_negative(memory->at(key));
}

RankRecord read_record(const std::string& path) {
  RankRecord record;
  const std::string text = read_text(path);
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const nlohmann::json json = parse_json(text.substr(at, end - at), path);
    const JsonNode line(json, path);
    const std::string kind = line.at("kind").string();
    if (kind == "start") take_start(line, record);
    if (kind == "step") take_step(line, record);
    if (kind == "turn") take_turn(line, record);
    if (kind == "collective") take_collective(line, record);
    if (kind == "counted") take_counted(line, record);
    if (kind == "end") take_end(line, record);
    if (kind == "failed") record.failed = line.at("why").string();
    at = end + 1;
  }
  return record;
}

}  // namespace

std::vector<RankRecord> read_records(const std::string& folder) {
  std::vector<RankRecord> records;
  HM_ENSURE(fs::is_directory(folder), "[script] the command removed {}, the folder of its record",
            folder);
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("rank") && name.ends_with(".jsonl"))
      records.push_back(read_record(entry.path()));
  }
  std::ranges::sort(records, {}, &RankRecord::rank);
  return records;
}

}  // namespace howmany::benches
