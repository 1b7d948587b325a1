// SPDX-License-Identifier: Apache-2.0
// Answers if a model fits, and with which mode and how many devices. Started by `howmany memory`.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "benches/common/gpus.h"
#include "benches/common/program.h"
#include "benches/common/step_memory.h"
#include "benches/tools/memory_flags.h"
#include "core/base/error.h"
#include "core/base/schema/defaults.h"
#include "core/base/text/format.h"
#include "core/base/text/table.h"
#include "core/nn/attention_memory.h"

namespace howmany::benches {
namespace {

constexpr double kSafeShare = 0.9;  // of a device's memory; the rest is for libraries

struct Row {
  std::string mode;
  int devices = 1;
  int64_t batch = 0;  // per device
  StepMemory memory = {};
  int64_t largest_batch = 0;  // that fits; only with a device memory
  std::string why = {};       // it cannot run; then the rest is void
};

// The published BERT and GPT-2 drop attention probabilities; the others here do not.
bool has_dropout(const std::string& model) {
  const std::string name = make_model(model).name;
  return name.starts_with("bert") || name.starts_with("gpt2");
}

std::string gigabytes(int64_t bytes) { return format_gigabytes(static_cast<double>(bytes)); }

int64_t safe(int64_t device_memory) {
  return static_cast<int64_t>(kSafeShare * static_cast<double>(device_memory));
}

Row row_of(const MemoryFlags& flags, const std::string& mode, int devices) {
  Row row{.mode = mode, .devices = devices};
  Workload work = flags.work;
  work.mode = mode;
  work.devices.assign(static_cast<size_t>(devices), Device{});
  const int64_t each =
      flags.batch_per_device > 0 ? flags.batch_per_device : default_batch(work.model);
  work.global_batch = flags.global_batch > 0 ? flags.global_batch : each * devices;
  row.batch = (work.global_batch + devices - 1) / devices;
  try {
    row.memory = step_memory(work);
    if (flags.device_memory > 0) row.largest_batch = largest_batch(work, safe(flags.device_memory));
  } catch (const std::invalid_argument& e) {
    row.why = e.what();
  }
  return row;
}

std::vector<Row> rows_of(const MemoryFlags& flags) {
  std::vector<Row> rows;
  for (const std::string& mode : flags.modes) {
    const ModeTraits traits = mode_traits(mode);
    const bool several = traits.over_ranks || traits.over_devices;
    for (const int devices : flags.counts)
      if (several ? devices > 1 || flags.modes.size() == 1 : devices == flags.counts.front())
        rows.push_back(row_of(flags, mode, several ? devices : 1));
  }
  std::ranges::stable_sort(rows, {}, &Row::devices);
  return rows;
}

bool fits(const Row& row, int64_t device_memory) {
  return row.why.empty() && row.memory.peak() <= safe(device_memory);
}

std::string how(const Row& row) {
  return fmt::format("{} on {}", row.mode, number(row.devices, "device"));
}

bool can_run(const Row& row) { return row.why.empty(); }

// Requires a row that can run.
const Row& least_of(const std::vector<Row>& rows) {
  const Row* least = &*std::ranges::find_if(rows, can_run);
  for (const Row& row : rows)
    if (can_run(row) && row.memory.peak() < least->memory.peak()) least = &row;
  return *least;
}

// Returns the row with the fewest micro-batches that fits, or nullopt.
template <typename RowOf>
std::optional<Row> fewest_micro_batches(int64_t batch, int64_t device_memory, const RowOf& row_of) {
  if (batch < 2) return std::nullopt;
  Row best = row_of(batch);
  if (!fits(best, device_memory)) return std::nullopt;
  for (int64_t low = 1, high = batch; low + 1 < high;) {  // fits with `high`, not with `low`
    const int64_t middle = low + (high - low) / 2;
    Row row = row_of(middle);
    if (fits(row, device_memory)) {
      best = std::move(row);
      high = middle;
    } else {
      low = middle;
    }
  }
  return best;
}

// If no row fits, returns a way to run the least one in less memory that does, or nullopt.
std::optional<Row> way_out(const MemoryFlags& flags, const std::vector<Row>& rows) {
  const auto fits_here = [&](const Row& row) { return fits(row, flags.device_memory); };
  if (flags.device_memory == 0 || std::ranges::any_of(rows, fits_here) ||
      std::ranges::none_of(rows, can_run))
    return std::nullopt;
  const Row& least = least_of(rows);
  const std::string start = least.mode + (least.mode.find(':') == least.mode.npos ? ":" : ",");
  MemoryFlags without_search = flags;  // for the largest batch
  without_search.device_memory = 0;
  const auto with = [&](const std::string& options) {
    return row_of(without_search, start + options, least.devices);
  };
  const auto accumulated = [&](const std::string& more) {
    return fewest_micro_batches(least.batch, flags.device_memory, [&](int64_t count) {
      return with(fmt::format("accumulate={}{}", count, more));
    });
  };
  if (auto row = accumulated("")) return row;
  if (Row row = with("recompute=1"); fits_here(row)) return row;
  return accumulated(",recompute=1");
}

// Rows are ordered by devices, and then as the modes were given: the simplest first.
std::string answer(const MemoryFlags& flags, const std::vector<Row>& rows,
                   const std::optional<Row>& other) {
  const auto first = std::ranges::find_if(rows, can_run);
  if (first == rows.end())
    return fmt::format("No answer for {}: {}", flags.work.model, rows.front().why);
  const std::string here = gigabytes(flags.device_memory);
  if (flags.device_memory == 0)
    return fmt::format(
        "{} needs {} on each device with {}; give --device-memory to see if it fits.",
        flags.work.model, gigabytes(first->memory.peak()), how(*first));
  const auto found =
      std::ranges::find_if(rows, [&](const Row& row) { return fits(row, flags.device_memory); });
  if (found != rows.end())
    return fmt::format("{} fits devices of {} with {}: {} of {} on each.", flags.work.model, here,
                       how(*found), gigabytes(found->memory.peak()), here);
  const Row& least = least_of(rows);
  const auto holds =
      std::ranges::find_if(rows, [](const Row& row) { return row.largest_batch > 0; });
  std::string also;
  if (holds != rows.end())
    also = fmt::format(" {} holds {}.", how(*holds), number(holds->largest_batch, "sample"));
  else if (!other)
    also = " Not even one sample fits.";
  if (other)
    also += fmt::format(" It fits with {}: {} of {} on each.", how(*other),
                        gigabytes(other->memory.peak()), here);
  return fmt::format(
      "{} does not fit devices of {} with {} per device: the least is {}, with {}.{}",
      flags.work.model, here, number(least.batch, "sample"), gigabytes(least.memory.peak()),
      how(least), also);
}

bool has_attention(const std::string& model) {
  bool found = false;
  for_each_layer(*make_model(model).layer, [&](Layer& layer, const std::string&) {
    found |= layer.describe().starts_with("attention(");
  });
  return found;
}

// Other programs need more memory here.
std::string assumptions(const MemoryFlags& flags) {
  std::string text = "Assumed: ";
  if (has_attention(flags.work.model)) {
    text += flags.attention == "flash"
                ? "fused attention, which keeps no scores (--attention eager counts them); "
            : has_dropout(flags.work.model)
                ? "eager attention, which keeps probabilities, their dropout and its mask; "
                : "eager attention, which keeps probabilities; ";
  }
  return text +
         "a loss that holds the output and one gradient of its size; no other dropout masks.";
}

std::string verdict(const Row& row, int64_t device_memory) {
  if (fits(row, device_memory)) return "yes";
  return row.memory.peak() <= device_memory ? "barely" : "no";
}

void print_rows(const MemoryFlags& flags, const std::vector<Row>& rows) {
  const bool judged = flags.device_memory > 0;
  std::vector<Table::Column> columns = {
      {"devices"},   {"mode", Table::Align::kLeft}, {"batch"}, {"parameters, gradients"},
      {"optimizer"}, {"activations, copies"},       {"peak"}};
  if (judged) columns.insert(columns.end(), {{"fits"}, {"largest batch"}});
  Table table(columns);
  for (const Row& row : rows) {
    std::vector<std::string> cells = {std::to_string(row.devices), row.mode,
                                      std::to_string(row.batch)};
    const bool runs = row.why.empty();
    for (const int64_t bytes :
         {row.memory.model, row.memory.optimizer, row.memory.step, row.memory.peak()})
      cells.push_back(runs ? gigabytes(bytes) : "-");
    if (judged) cells.push_back(runs ? verdict(row, flags.device_memory) : "-");
    if (judged) cells.push_back(runs ? std::to_string(row.largest_batch) : "-");
    table.add(cells);
  }
  fmt::print("{}", table.text());
}

void print_text(const MemoryFlags& flags, const std::vector<Row>& rows,
                const std::optional<Row>& other) {
  const Workload& work = flags.work;
  fmt::print("{}\n\n", wrapped(answer(flags, rows, other), kTextWidth, 2));
  fmt::print("{}, {}, {}, {}per device\n", printable(work.model), work.optimizer,
             name_of(work.precision), work.kernels.empty() ? "" : work.kernels + " kernels, ");
  print_rows(flags, rows);
  for (const Row& row : rows)
    if (!row.why.empty()) fmt::print("{}: {}\n", how(row), row.why);
  fmt::print("\n{}\n", wrapped(assumptions(flags), kTextWidth, 0));
  const std::string rest = work.kernels.empty()
                               ? "A GPU also holds its context, libraries and their workspaces"
                               : "A process also holds its code, libraries and their buffers";
  fmt::print("{}\n", wrapped("Estimated from the tensors of a step; nothing was measured. " + rest +
                                 ": \"fits\" leaves them 10 % of its memory.",
                             kTextWidth, 0));
}

nlohmann::ordered_json json_of(const MemoryFlags& flags, const std::vector<Row>& rows,
                               const std::optional<Row>& other) {
  const Workload& work = flags.work;
  nlohmann::ordered_json json = {
      {"schema", "howmany.memory/1"},   {"because", answer(flags, rows, other)},
      {"evidence", "predicted"},        {"model", work.model},
      {"optimizer", work.optimizer},    {"precision", name_of(work.precision)},
      {"kernels", work.kernels},        {"device_memory", flags.device_memory},
      {"attention", flags.attention},   {"assumed", assumptions(flags)},
      {"rows", nlohmann::json::array()}};
  for (const Row& row : rows) {
    nlohmann::ordered_json one = {{"mode", row.mode}, {"devices", row.devices}};
    one["batch_per_device"] = row.batch;
    if (!row.why.empty()) {
      one["why"] = row.why;
    } else {
      one["model_bytes"] = row.memory.model;
      one["optimizer_bytes"] = row.memory.optimizer;
      one["step_bytes"] = row.memory.step;
      one["peak_bytes"] = row.memory.peak();
      if (flags.device_memory > 0) {
        one["fits"] = fits(row, flags.device_memory);
        one["largest_batch_per_device"] = row.largest_batch;
      }
    }
    json["rows"].push_back(std::move(one));
  }
  if (other)
    json["fits_with"] = {
        {"mode", other->mode}, {"devices", other->devices}, {"peak_bytes", other->memory.peak()}};
  return json;
}

int64_t memory_of_smallest_gpu() {
  int64_t least = 0;
  for (const auto& gpu : find_gpus().list) {
    if (gpu.value("integrated", false)) continue;
    const int64_t bytes = gpu.value("memory_bytes", int64_t{0});
    if (bytes > 0 && (least == 0 || bytes < least)) least = bytes;
  }
  return least;
}

int run(int argc, char** argv) {
  MemoryFlags flags = parse_memory_flags(argc, argv);
  if (flags.device_memory == 0) flags.device_memory = memory_of_smallest_gpu();
  set_attention_memory(
      {.eager = flags.attention == "eager", .dropout = has_dropout(flags.work.model)});
  const std::vector<Row> rows = rows_of(flags);
  const std::optional<Row> other = way_out(flags, rows);
  if (flags.json)
    fmt::print("{}\n", json_of(flags, rows, other).dump(2));
  else
    print_text(flags, rows, other);
  return 0;
}

}  // namespace
}  // namespace howmany::benches

int main(int argc, char** argv) {
  return howmany::benches::run_program("howmany memory",
                                       [&] { return howmany::benches::run(argc, argv); });
}
