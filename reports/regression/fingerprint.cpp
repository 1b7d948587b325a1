// SPDX-License-Identifier: Apache-2.0
#include "reports/regression/fingerprint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "core/base/schema/context.h"
#include "core/base/schema/metrics.h"
#include "core/base/text/table.h"

namespace howmany::reports {
namespace {

constexpr std::string_view kDecisive[] = {context::kCpu,
                                          "cpu_model",
                                          "num_cpus",
                                          context::kCoresAllowed,
                                          context::kMemoryBytes,
                                          "caches",
                                          context::kGpu,
                                          "gpus",
                                          "gpu_name",
                                          "gpu_model",
                                          "gpu_count",
                                          "gpu_memory_bytes",
                                          context::kWorld,
                                          context::kLauncher,
                                          context::kBuildType,
                                          "library_build_type",
                                          "virtualization"};
constexpr std::string_view kPassing[] = {"date",
                                         "load_avg",
                                         "mhz_per_cpu",
                                         "executable",
                                         "json_schema_version",
                                         "howmany_date",
                                         "howmany_blocks",
                                         "howmany_request",
                                         context::kCoresBecause,
                                         context::kCommit,
                                         metric::kBusyElsewhereFraction};

// Groups the caches by level: {"L1": [{...}, {...}]}.
std::map<std::string, nlohmann::json> by_level(const nlohmann::json& caches) {
  std::map<std::string, nlohmann::json> levels;
  for (const nlohmann::json& cache : caches) {
    if (!cache.is_object()) continue;
    const nlohmann::json level = cache.value("level", nlohmann::json());
    if (level.is_number_integer()) levels[fmt::format("L{}", level.get<int64_t>())] += cache;
  }
  return levels;
}

// Returns "L1-L3" for the caches that differ, or "" if the levels are unknown.
std::string differing_levels(const nlohmann::json& a, const nlohmann::json& b) {
  const auto base = by_level(a), candidate = by_level(b);
  std::set<std::string> differ;
  for (const auto& [level, caches] : base) {
    const auto other = candidate.find(level);
    if (other == candidate.end() || other->second != caches) differ.insert(level);
  }
  for (const auto& [level, caches] : candidate) {
    if (!base.contains(level)) differ.insert(level);
  }
  if (differ.empty()) return "";
  return differ.size() == 1 ? *differ.begin() : *differ.begin() + "-" + *differ.rbegin();
}

// Returns "cpu: A in the base, B in the candidate". Lists and objects are too long for a sentence.
std::string difference(const std::string& key, const nlohmann::json& a, const nlohmann::json& b) {
  if (key == "caches") {
    const std::string levels = differing_levels(a, b);
    return levels.empty() ? "caches differ" : levels + " caches differ";
  }
  if (a.is_structured() || b.is_structured()) return shortened(key, 80) + " differs";
  const auto text = [](const nlohmann::json& value) {
    constexpr auto kReplace = nlohmann::json::error_handler_t::replace;
    return shortened(
        value.is_string() ? value.get<std::string>() : value.dump(-1, ' ', false, kReplace), 80);
  };
  return fmt::format("{}: {} in the base, {} in the candidate", shortened(key, 80), text(a),
                     text(b));
}

bool is_of_build(std::string_view key) {
  return key == context::kBuildType || key == "library_build_type";
}

bool is_known(const nlohmann::json& value) { return !value.is_null() && value != "unknown"; }

}  // namespace

Likeness likeness(const nlohmann::json& base, const nlohmann::json& candidate) {
  std::set<std::string> keys;
  for (const auto* context : {&base, &candidate}) {
    for (const auto& [key, value] : context->items()) keys.insert(key);
  }
  Likeness result;
  bool same_machine = true;
  for (const std::string& key : keys) {
    if (std::ranges::count(kPassing, key) > 0) continue;
    const nlohmann::json a = base.value(key, nlohmann::json()),
                         b = candidate.value(key, nlohmann::json());
    const bool decisive = std::ranges::count(kDecisive, key) > 0;
    if (a == b) continue;
    if (!is_known(a) || !is_known(b)) {
      if (decisive) result.unknown.push_back(key);
      continue;
    }
    (decisive ? result.decisive : result.others).push_back(difference(key, a, b));
    same_machine = same_machine && (!decisive || is_of_build(key));
  }
  if (base.empty() || candidate.empty()) result.unknown.emplace_back("context");
  if (!result.others.empty() || !result.unknown.empty())
    result.level = Likeness::Level::kComparable;
  if (!result.decisive.empty()) result.level = Likeness::Level::kNot;
  result.other_build = !result.decisive.empty() && same_machine;
  return result;
}

std::string refusal(const Likeness& likeness) {
  return printable(fmt::format("other {}: {}", likeness.other_build ? "build" : "machine",
                               fmt::join(likeness.decisive, "; ")));
}

}  // namespace howmany::reports
