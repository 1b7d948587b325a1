// SPDX-License-Identifier: Apache-2.0
#include "parallel/modes/mode.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/text/names.h"
#include "core/base/text/options.h"
#include "core/nn/cut.h"
#include "parallel/pipeline/schedule.h"
#include "parallel/pipeline/stage.h"

namespace howmany {
namespace {

struct Entry {
  std::string_view name;
  ModeTraits traits;
  std::string_view options;
  std::unique_ptr<Mode> (*make)(ModeArgs);
};

const Entry kEntries[] = {
#define X(name, what, traits, options) {#name, traits, options, modes::name},
    HM_MODES(X)
#undef X
};

const Entry& entry_named(std::string_view name) {
  const auto* found = std::find_if(std::begin(kEntries), std::end(kEntries),
                                   [&](auto& e) { return e.name == name; });
  if (found != std::end(kEntries)) return *found;
  throw std::invalid_argument("[mode] " + unknown_name("mode", name, mode_names()));
}

std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> list;
  while (!text.empty()) {
    const size_t space = std::min(text.find(' '), text.size());
    list.push_back(text.substr(0, space));
    text.remove_prefix(std::min(space + 1, text.size()));
  }
  return list;
}

bool parse_switch(const std::string& key, const std::string& text) {
  HM_REQUIRE(text == "on" || text == "off", "[mode] {}: '{}' is neither on nor off", key, text);
  return text == "on";
}

bool parse_flag(const std::string& key, const std::string& text) {
  HM_REQUIRE(text == "0" || text == "1", "[mode] {}: '{}' is neither 0 nor 1", key, text);
  return text == "1";
}

void read_option(const std::string& key, const std::string& text, ModeOptions& options) {
  const auto number = [&] {
    const int64_t value = parse_positive("mode", key, text);
    HM_REQUIRE(value <= 1 << 16, "[mode] {}: {} is too many", key, value);
    return static_cast<int>(value);
  };
  if (key == "placement") options.placement = text;
  if (key == "stages") options.stages = number();
  if (key == "ways") options.ways = number();
  if (key == "across") {
    HM_REQUIRE(text == "pipeline" || text == "model",
               "[mode] across: '{}' is neither pipeline nor model", text);
    options.across = text;
  }
  if (key == "level") {
    options.level = number();
    HM_REQUIRE(options.level <= 3, "[mode] level: {} is none of 1, 2 and 3", options.level);
  }
  if (key == "accumulate") options.accumulate = number();
  if (key == "micro_batches") options.micro_batches = number();
  if (key == "graph") options.graph = parse_switch(key, text);
  if (key == "sequence") options.sequence = parse_flag(key, text);
  if (key == "recompute") options.recompute = parse_flag(key, text);
  if (key == "schedule") {
    make_schedule(text, {});
    options.schedule = text;
  }
}

const Entry& parse(std::string_view text, ModeOptions& options) {
  const auto [name, given] = parse_named("mode", text);
  const Entry& entry = entry_named(name);
  allow_options("mode", name, given, words(entry.options));
  for (const auto& [key, value] : given) read_option(key, value, options);
  return entry;
}

void check_graph(const Entry& entry, const ModeOptions& options,
                 const std::vector<Device>& devices) {
  const Device home = devices.empty() ? Device{} : devices[0];
  HM_REQUIRE(!options.graph || home.type == DeviceType::cuda,
             "[{}] graph=on captures the steps of a GPU, and {} is none", entry.name, home.str());
}

}  // namespace

int default_stages(int world) {
  for (int stages = 2; stages <= world; ++stages)
    if (world % stages == 0) return stages;
  return 1;
}

std::map<std::string, Tensor> Mode::gradients() {
  std::map<std::string, Tensor> grads;
  for (const Param* p : params()) grads[p->name] = p->grad;
  return grads;
}

std::vector<std::string_view> mode_names() {
  std::vector<std::string_view> names;
  for (const Entry& entry : kEntries) names.push_back(entry.name);
  return names;
}

ModeTraits mode_traits(std::string_view text) {
  ModeOptions options;
  ModeTraits traits = parse(text, options).traits;
  traits.over_devices = traits.over_devices || options.across == "model";
  return traits;
}

void check_mode(std::string_view text, const std::vector<Device>& devices) {
  ModeOptions options;
  const Entry& entry = parse(text, options);
  check_graph(entry, options, devices);
}

void check_model(std::string_view text, const ModelSpec& model, int ranks) {
  ModeOptions options;
  const Entry& entry = parse(text, options);
  check_stages(entry.name, model, stages_of(text, ranks));
  const bool tensor = entry.name == "tensor";
  if (!tensor && options.ways < 2) return;
  Cut cut{.count = options.ways > 0 ? options.ways : ranks};
  if (options.sequence) cut.positions.emplace();
  cut_model(model, cut);
}

int ranks_of(std::string_view text, int devices) {
  ModeOptions options;
  const Entry& entry = parse(text, options);
  if (!entry.traits.over_ranks) return 1;
  if (options.across != "model") return devices;
  const int each = options.stages > 0 ? options.stages : default_stages(devices);
  HM_REQUIRE(devices % each == 0, "[{}] {} devices do not divide into replicas of {} stages",
             entry.name, devices, each);
  return devices / each;
}

int stages_of(std::string_view text, int ranks) {
  ModeOptions options;
  const Entry& entry = parse(text, options);
  const ModeTraits& traits = entry.traits;
  if (!traits.over_ranks || traits.equal_ranks || options.across == "model") return 1;
  if (options.stages > 0) return options.stages;
  const bool chooses = std::ranges::count(words(entry.options), "stages") > 0;
  return chooses ? default_stages(ranks / std::max(1, options.ways)) : ranks;
}

std::unique_ptr<Mode> make_mode(std::string_view text, ModeArgs args) {
  const Entry& entry = parse(text, args.options);
  HM_REQUIRE(args.model.layer != nullptr, "[{}] no model given", entry.name);
  HM_REQUIRE(!entry.traits.over_ranks || args.comm != nullptr,
             "[{}] runs over ranks and was given no comm", entry.name);
  HM_REQUIRE(mode_traits(text).over_devices || args.devices.size() <= 1,
             "[{}] uses one device in each rank, was given {}", entry.name, args.devices.size());
  check_graph(entry, args.options, args.devices);
  return entry.make(std::move(args));
}

}  // namespace howmany
