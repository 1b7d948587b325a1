// SPDX-License-Identifier: Apache-2.0
#include "reports/predict/rates.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/error.h"
#include "core/base/statistics.h"
#include "core/base/text/files.h"
#include "core/base/text/lines.h"
#include "core/base/text/log_number.h"
#include "core/base/text/table.h"
#include "reports/results/plain_json.h"

namespace howmany::reports {
namespace {

constexpr std::string_view kMllog = ":::MLLOG";
constexpr size_t kMaxRows = 100'000;

std::string refusal(std::string_view part) {
  return fmt::format("--rates: \"{}\" is not N=RATE, such as 1=100,2=190 or 1=0.42s,2=0.45s",
                     printable(std::string(part.substr(0, 60))));
}

enum class Unit { kPerSecond, kSeconds, kSteps, kNone };

// The text after the number: a rate, seconds per step, or steps per second.
std::optional<Unit> unit_of(std::string_view text) {
  std::string unit = lower(trimmed(text));
  std::erase(unit, ' ');
  if (unit.empty()) return Unit::kNone;
  const auto one_of = [&](std::initializer_list<std::string_view> all) {
    return std::ranges::find(all, unit) != all.end();
  };
  if (one_of({"s", "sec", "secs", "second", "seconds", "s/it", "s/iter", "s/step", "s/batch",
              "sec/step", "sec/batch", "sec/it", "seconds/step"}))
    return Unit::kSeconds;
  if (one_of({"it/s", "iter/s", "iters/s", "its/s", "step/s", "steps/s", "batch/s", "batches/s",
              "it/sec", "steps/sec", "batches/sec"}))
    return Unit::kSteps;
  if (unit.ends_with("/s") || unit.ends_with("/sec") || unit.ends_with("/second") ||
      unit.ends_with("persecond"))
    return Unit::kPerSecond;
  return {};
}

struct Value {
  double value = 0;
  Unit unit = Unit::kNone;
};

std::optional<Value> value_of(std::string_view text) {
  const auto number = leading_number(text);
  if (!number || !(number->value > 0)) return {};
  const std::string small = lower(number->rest);
  const bool milli = small.starts_with("ms");
  const auto unit = unit_of(milli ? std::string_view(small).substr(1) : number->rest);
  if (!unit || (milli && *unit != Unit::kSeconds)) return {};
  return Value{milli ? number->value / 1000 : number->value, *unit};
}

// Converts values of one unit to rates.
class Collector {
 public:
  void add(int devices, const Value& value, const std::string& where) {
    const bool batches = value.unit == Unit::kSeconds || value.unit == Unit::kSteps;
    if (!values_.empty() && batches != of_batches_)
      throw InputError(fmt::format("{}: give samples per second everywhere, or seconds per step",
                                   printable(where)));
    of_batches_ = batches;
    double rate = value.value;
    if (value.unit == Unit::kSeconds) rate = devices / value.value;
    if (value.unit == Unit::kSteps) rate = devices * value.value;
    values_[devices].push_back(rate);
  }
  MeasuredRates medians() const {
    MeasuredRates all;
    all.of_batches = of_batches_;
    for (const auto& [devices, values] : values_) all.rates.push_back({devices, median(values)});
    return all;
  }
  MeasuredRates every() const {
    MeasuredRates all;
    all.of_batches = of_batches_;
    for (const auto& [devices, values] : values_)
      for (const double value : values) all.rates.push_back({devices, value});
    return all;
  }

 private:
  std::map<int, std::vector<double>> values_;
  bool of_batches_ = false;
};

std::optional<int> devices_in(std::string_view text) {
  const auto number = leading_number(text);
  if (!number || !number->rest.empty() || number->value != std::floor(number->value) ||
      number->value < 1 || number->value > kMaxPredicted)
    return {};
  return static_cast<int>(number->value);
}

// Splits "1=1,234.5, 2=2.4k" before each "N=".
std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<size_t> starts;
  for (size_t equals = text.find('='); equals != std::string_view::npos;
       equals = text.find('=', equals + 1)) {
    size_t at = equals;
    while (at > 0 && kBlanks.find(text[at - 1]) != std::string_view::npos) --at;
    while (at > 0 && std::isdigit(static_cast<unsigned char>(text[at - 1])) != 0) --at;
    const bool begins =
        at == 0 || std::string_view(",; \t\n").find(text[at - 1]) != std::string_view::npos;
    if (begins) starts.push_back(at);
  }
  std::vector<std::string_view> parts;
  if (starts.empty() || !trimmed(text.substr(0, starts[0]), " \t\n,;").empty())
    parts.push_back(text.substr(0, starts.empty() ? text.size() : starts[0]));
  for (size_t i = 0; i < starts.size(); ++i) {
    const size_t end = i + 1 < starts.size() ? starts[i + 1] : text.size();
    parts.push_back(trimmed(text.substr(starts[i], end - starts[i]), " \t\r\n,;"));
  }
  return parts;
}

std::vector<std::string_view> cells_of(std::string_view line) {
  char separator = ' ';
  for (const char one : {'\t', ';', ','})
    if (line.find(one) != std::string_view::npos) {
      separator = one;
      break;
    }
  std::vector<std::string_view> cells;
  while (true) {
    // A quoted cell holds separators, as in "1,234.5".
    const bool quoted = separator != ' ' && trimmed(line).starts_with('"');
    if (quoted) line = trimmed(line).substr(1);
    const size_t close = quoted ? std::min(line.find('"'), line.size()) : 0;
    const size_t end = std::min(line.find(separator, close), line.size());
    cells.push_back(trimmed(quoted ? line.substr(0, close) : line.substr(0, end)));
    if (end == line.size()) break;
    line.remove_prefix(end + 1);
    if (separator == ' ') line = trimmed(line);
  }
  return cells;
}

bool is_count(std::string_view heading) {
  const std::string name = lower(trimmed(heading, " \t\"#"));
  for (const std::string_view one :
       {"n", "gpus", "gpu", "n_gpus", "ngpus", "n_gpu", "num_gpus", "gpu_count", "devices",
        "n_devices", "ranks", "world_size", "world size", "number of gpus", "number of devices",
        "accelerators", "# gpus"})
    if (name == one) return true;
  return false;
}

// The unit of a column; nullopt if it holds no rates.
std::optional<Unit> unit_of_heading(std::string_view heading) {
  const std::string name = lower(trimmed(heading, " \t\""));
  const auto has = [&](std::string_view part) { return name.find(part) != std::string::npos; };
  if (has("throughput") || has("samples") || has("images") || has("img") || has("tokens") ||
      has("per_s") || name == "rate" || name == "speed")
    return Unit::kPerSecond;
  if (name == "step_s" || has("s/step") || has("step_time") || has("step time") || has("seconds") ||
      has("sec/") || has("s/it"))
    return Unit::kSeconds;
  if (has("it/s") || has("steps/s")) return Unit::kSteps;
  if (has("/s")) return Unit::kPerSecond;
  return {};
}

struct Columns {
  size_t count = 0, rate = 1;
  Unit unit = Unit::kNone;
};

Columns columns_of(const std::vector<std::string_view>& heading, const std::string& source) {
  Columns columns;
  const auto count = std::ranges::find_if(heading, is_count);
  const auto rate = std::ranges::find_if(heading, [&](std::string_view one) {
    return !is_count(one) && unit_of_heading(one).has_value();
  });
  if (count == heading.end() || rate == heading.end()) {
    if (heading.size() == 2) return columns;
    throw InputError(
        fmt::format("{}: no column {} in \"{}\"; expected n and samples_per_s, or n and step_s",
                    source, count == heading.end() ? "of the number of GPUs" : "of rates",
                    printable(fmt::format("{}", fmt::join(heading, ", "))).substr(0, 200)));
  }
  columns.count = count - heading.begin();
  columns.rate = rate - heading.begin();
  columns.unit = *unit_of_heading(*rate);
  return columns;
}

// The JSON after ":::MLLOG" of each line, which may begin with a rank.
std::vector<nlohmann::json> events_in(const std::string& text) {
  std::vector<nlohmann::json> events;
  for (const std::string_view line : lines_of(text)) {
    const size_t at = line.find(kMllog);
    if (at == std::string_view::npos) continue;
    auto event = nlohmann::json::parse(line.substr(at + kMllog.size()), nullptr, false);
    if (event.is_object()) events.push_back(std::move(event));
  }
  return events;
}

double number_in(const nlohmann::json& object, const char* key) {
  const nlohmann::json& value = json_member(object, key);
  return value.is_number() ? value.get<double>() : 0;
}

}  // namespace

double rate_in_mllog(const std::string& text, const std::string& source) {
  std::vector<double> throughputs;
  std::map<double, double> time_at;  // samples -> seconds, from marks with samples_count
  double epochs = 0, began = 0, ended = 0, samples = 0;
  for (const nlohmann::json& event : events_in(text)) {
    const nlohmann::json &value = json_member(event, "value"), &key = json_member(event, "key");
    const double now = number_in(event, "time_ms") / 1000;
    if (key == "train_samples" && value.is_number()) samples = value.get<double>();
    if (key == "epoch_start" && began == 0) began = now;
    if (key == "epoch_stop") {
      ended = now;
      epochs += 1;
    }
    double rate = number_in(value, "throughput");
    if (key == "throughput" && value.is_number()) rate = value.get<double>();
    if (rate > 0) throughputs.push_back(rate);
    const double count = number_in(json_member(event, "metadata"), "samples_count");
    if (count > 0) time_at.try_emplace(count, now);
  }
  if (!throughputs.empty()) return median(throughputs);
  const auto per_second = [&](double of, double seconds) { return seconds > 0 ? of / seconds : 0; };
  double rate = 0;
  if (time_at.size() > 1)
    rate = per_second(time_at.rbegin()->first - time_at.begin()->first,
                      time_at.rbegin()->second - time_at.begin()->second);
  if (!(rate > 0)) rate = per_second(epochs * samples, ended - began);
  if (!(rate > 0))
    throw InputError(
        fmt::format("{}: no throughput, and no samples over time, in its :::MLLOG lines", source));
  return rate;
}

MeasuredRates rates_in_table(const std::string& text, const std::string& source) {
  if (text.find(kMllog) != std::string::npos)
    throw InputError(fmt::format(
        "{}: the lines of MLPerf's logger do not hold the number of GPUs; write --rates 8={}",
        source, source));
  Collector collector;
  Columns columns;
  bool first = true;
  size_t number = 0;
  for (const std::string_view line : lines_of(text)) {
    ++number;
    if (line.empty() || (line.starts_with('#') && !first)) continue;
    std::string_view row = line;
    if (first && row.starts_with("\xef\xbb\xbf")) row.remove_prefix(3);
    auto cells = cells_of(trimmed(row, " \t#"));
    if (std::exchange(first, false) && !devices_in(cells[0])) {
      columns = columns_of(cells, source);
      continue;
    }
    // An unquoted separator of thousands splits a rate into two cells.
    const auto known = cells.size() > std::max(columns.count, columns.rate)
                           ? devices_in(cells[columns.count])
                           : std::nullopt;
    std::optional<Value> value;
    if (known) value = value_of(cells[columns.rate]);
    if (known && cells.size() == 3 && columns.rate == 1 && cells[2].size() >= 3)
      value = value_of(fmt::format("{},{}", cells[1], cells[2]));
    if (!value)
      throw InputError(fmt::format("{}:{}: \"{}\" is not a number of GPUs and a rate", source,
                                   number, printable(std::string(line.substr(0, 60)))));
    if (value->unit == Unit::kNone) value->unit = columns.unit;
    collector.add(*known, *value, fmt::format("{}:{}", source, number));
    if (number > kMaxRows) throw InputError(fmt::format("{}: too many rows", source));
  }
  MeasuredRates all = collector.medians();
  if (all.rates.empty()) throw InputError(fmt::format("{}: no rates", source));
  return all;
}

MeasuredRates parse_rates(const std::string& text) {
  if (std::filesystem::is_regular_file(text)) return rates_in_table(read_text(text), text);
  Collector collector;
  for (const std::string_view part : parts_of(text)) {
    const size_t equals = std::min(part.find('='), part.size());
    const auto devices = devices_in(part.substr(0, equals));
    if (equals == part.size() || !devices) throw InputError(refusal(part));
    const std::string given(trimmed(part.substr(equals + 1)));
    std::optional<Value> value = value_of(given);
    if (!value && std::filesystem::is_regular_file(given))
      value = Value{rate_in_mllog(read_text(given), given), Unit::kPerSecond};
    if (!value) throw InputError(refusal(part));
    collector.add(*devices, *value, "--rates");
  }
  return collector.every();
}

}  // namespace howmany::reports
