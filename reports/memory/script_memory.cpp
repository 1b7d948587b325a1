// SPDX-License-Identifier: Apache-2.0
#include "reports/memory/script_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "core/base/private_folder.h"
#include "core/base/schema/flags.h"
#include "core/base/schema/metrics.h"
#include "core/base/schema/parameters.h"
#include "core/base/schema/samples.h"
#include "core/base/text/format.h"
#include "core/base/text/json.h"
#include "core/base/text/table.h"
#include "reports/predict/count_step.h"
#include "reports/results/bench_file.h"
#include "reports/results/machine.h"

namespace howmany::reports {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kBenchName = "[script] ";  // before a message
constexpr const char* kUsualGpu = "NVIDIA A100";      // of which the allocator is the same
constexpr std::array<int, 2> kUsualCapability = {8, 0};
constexpr int64_t kUsualMemory = 80'000'000'000;
constexpr double kSafeShare = 0.9;  // of a device's memory; the rest is for libraries

double bytes_of(const BenchRow& row, const char* metric) {
  const auto found = row.counters.find(metric);
  if (found == row.counters.end())
    throw InputError(fmt::format("script_bench: no {} was counted", metric));
  return found->second;
}

std::string device_of(const SampleLine& line) {
  const JsonNode root(line.json, "script_bench");
  return root.at(sample_line::kParameters).at(parameter::kDevice).string();
}

bool can_run(const ScriptMemory& row) { return row.why.empty(); }

std::string ranks_text(int ranks) { return number(ranks, "rank"); }

const char* evidence_of(const ScriptMemory& row) {
  if (row.ranks > 1) return "rehearsed";
  return row.on_gpu ? "measured" : "estimated";
}

std::string source_of(const std::vector<ScriptMemory>& rows) {
  const bool on_gpu = std::ranges::any_of(rows, &ScriptMemory::on_gpu);
  const bool several = std::ranges::any_of(rows, [](auto& row) { return row.ranks > 1; });
  std::string text = on_gpu ? "Counted by PyTorch's allocator on the GPU here."
                            : "No GPU is here: the tensors of a step were counted, and given to a "
                              "model of PyTorch's GPU "
                              "allocator (reserved). The workspaces of GPU kernels are not in it.";
  if (several)
    text +=
        " With more ranks than one, a single process ran as one of them: what FSDP divides is "
        "divided, and each rank has the batch of the script.";
  return text + " \"fits\" leaves 10 % to the GPU's context and libraries.";
}

Json row_json(const ScriptMemory& row, int64_t device_memory) {
  Json one = {{"devices", row.ranks}};
  if (!can_run(row)) {
    one["why"] = row.why;
    return one;
  }
  one["evidence"] = evidence_of(row);
  one[metric::kParameterBytes] = row.parameters;
  one[metric::kGradientBytes] = row.gradients;
  one[metric::kOptimizerBytes] = row.optimizer;
  one["peak_bytes"] = row.peak;
  one[metric::kReservedBytes] = row.reserved;
  if (device_memory > 0) one["fits"] = fits(row, device_memory);
  return one;
}

// Returns the reason, or "".
std::string why_not_run(const Script& script, int ranks, const BenchScratch& scratch) try {
  scratch.clear();
  run_once(script, {flag::kCountMemory}, ranks, 0, scratch);
  return "";
} catch (const InputError&) {
  throw;
} catch (const std::runtime_error& error) {
  const std::string why = error.what();
  const size_t name = why.find(kBenchName);
  return name == std::string::npos ? why : why.substr(name + kBenchName.size());
}

// A script that forms a group needs a launcher even for one rank.
Script launched(Script script) {
  script.words = under_torchrun(script.words);
  return script;
}

// On a GPU that is not here. Returns nullopt if the script trains on the CPU, or cannot be
// followed.
std::optional<ScriptMemory> counted_memory(const Script& script, int ranks,
                                           int64_t device_memory) try {
  StepCounter counter({.name = kUsualGpu,
                       .memory = device_memory > 0 ? device_memory : kUsualMemory,
                       .capability = kUsualCapability,
                       .devices = ranks},
                      [](const std::string&) {});
  const CountedMemory found = counter.count(script, ranks).memory;
  return ScriptMemory{.ranks = ranks,
                      .parameters = found.parameters,
                      .gradients = found.gradients,
                      .optimizer = found.optimizer,
                      .peak = found.peak,
                      .reserved = found.reserved};
} catch (const std::runtime_error&) {
  return std::nullopt;
}

}  // namespace

ScriptMemory measure_memory(const Script& script, int ranks, int64_t device_memory) {
  if (read_machine().gpus.empty())
    if (auto memory = counted_memory(script, ranks, device_memory)) return *memory;
  const PrivateFolder folder;
  const BenchScratch scratch(folder.path());
  ScriptMemory memory{.ranks = ranks};
  memory.why = why_not_run(script, ranks, scratch);
  const bool may_launch = ranks == 1 && !script.has_count() && !python_of(script.words).empty();
  if (!memory.why.empty() && may_launch && why_not_run(launched(script), ranks, scratch).empty())
    memory.why.clear();
  if (!memory.why.empty()) return memory;
  const BenchFile file = read_bench(scratch.bench);
  const std::vector<SampleLine> lines = read_samples(scratch.samples);
  if (file.rows.size() != 1 || lines.size() != 1)
    throw InputError("script_bench: expected one row and its samples");
  memory.parameters = bytes_of(file.rows[0], metric::kParameterBytes);
  memory.gradients = bytes_of(file.rows[0], metric::kGradientBytes);
  memory.optimizer = bytes_of(file.rows[0], metric::kOptimizerBytes);
  memory.peak = bytes_of(file.rows[0], metric::kPeakBytesPerDevice);
  memory.reserved = bytes_of(file.rows[0], metric::kReservedBytes);
  memory.on_gpu = device_of(lines[0]) == "cuda";
  return memory;
}

bool fits(const ScriptMemory& memory, int64_t device_memory) {
  return can_run(memory) && memory.reserved <= kSafeShare * static_cast<double>(device_memory);
}

std::string answer_of(const MemoryQuestion& question, const std::vector<ScriptMemory>& rows) {
  const auto first = std::ranges::find_if(rows, can_run);
  if (first == rows.end())
    return fmt::format("No answer for {}: {}.", question.script, rows.front().why);
  const auto size = static_cast<double>(question.device_memory);
  if (question.device_memory == 0)
    return fmt::format(
        "{} needs {} on each device with {}; give --device-memory to see if it fits.",
        question.script, format_gigabytes(first->reserved), ranks_text(first->ranks));
  const auto found = std::ranges::find_if(
      rows, [&](const ScriptMemory& row) { return fits(row, question.device_memory); });
  if (found != rows.end())
    return fmt::format("{} fits devices of {} with {}: {} of {} on each.", question.script,
                       format_gigabytes(size), ranks_text(found->ranks),
                       format_gigabytes(found->reserved), format_gigabytes(size));
  const auto least = std::ranges::min_element(
      rows, {}, [](const ScriptMemory& row) { return std::pair(!can_run(row), row.reserved); });
  return fmt::format("{} does not fit devices of {}: it needs {} on each with {}. {}",
                     question.script, format_gigabytes(size), format_gigabytes(least->reserved),
                     ranks_text(least->ranks),
                     least->activations() > least->reserved / 2
                         ? "Most are activations: lower the batch, or recompute them."
                         : "Most are parameters, gradients and the optimizer: divide them by FSDP "
                           "over more ranks.");
}

std::string render_memory(const MemoryQuestion& question, const std::vector<ScriptMemory>& rows) {
  std::vector<Table::Column> columns = {{"ranks"},     {"parameters"},         {"gradients"},
                                        {"optimizer"}, {"activations, other"}, {"peak"},
                                        {"reserved"}};
  const bool judged = question.device_memory > 0;
  if (judged) columns.push_back({"fits"});
  Table table(columns);
  std::string refused;
  for (const ScriptMemory& row : rows) {
    if (!can_run(row)) {
      refused += wrapped(fmt::format("{}: {}", ranks_text(row.ranks), row.why), kTextWidth, 2);
      refused += "\n";
      continue;
    }
    std::vector<std::string> cells = {std::to_string(row.ranks)};
    for (const double bytes :
         {row.parameters, row.gradients, row.optimizer, row.activations(), row.peak, row.reserved})
      cells.push_back(format_gigabytes(bytes));
    if (judged) cells.emplace_back(fits(row, question.device_memory) ? "yes" : "no");
    table.add(cells);
  }
  const bool any = std::ranges::any_of(rows, can_run);
  return fmt::format("{}\n\n{}{}{}", wrapped(answer_of(question, rows), kTextWidth, 2),
                     any ? question.script + ", on each device\n" + table.text() : "", refused,
                     any ? "\n" + wrapped(source_of(rows), kTextWidth, 0) + "\n" : "");
}

Json to_json(const MemoryQuestion& question, const std::vector<ScriptMemory>& rows) {
  Json json = {{"schema", "howmany.memory/1"},
               {"because", answer_of(question, rows)},
               {"script", question.script},
               {"device_memory", question.device_memory},
               {"rows", Json::array()}};
  for (const ScriptMemory& row : rows)
    json["rows"].push_back(row_json(row, question.device_memory));
  return json;
}

}  // namespace howmany::reports
