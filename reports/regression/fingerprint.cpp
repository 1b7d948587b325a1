#include "reports/regression/fingerprint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "core/base/schema/context.h"
#include "core/base/schema/metrics.h"

namespace howmany::reports {
namespace {

constexpr std::array<std::string_view, 17> kDecisive = {context::kCpu,
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
constexpr std::array<std::string_view, 11> kPassing = {"date",
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

template <size_t N>
bool is_one_of(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string shown(const nlohmann::json& value) {
  std::string text = value.is_string()
                         ? value.get<std::string>()
                         : value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (text.size() > 80) text = text.substr(0, 77) + "...";
  return text;
}

bool is_known(const nlohmann::json& value) { return !value.is_null() && value != "unknown"; }

}  // namespace

Likeness likeness(const nlohmann::json& base, const nlohmann::json& candidate) {
  std::set<std::string> keys;
  for (const auto* context : {&base, &candidate}) {
    for (const auto& [key, value] : context->items()) keys.insert(key);
  }
  Likeness result;
  for (const std::string& key : keys) {
    if (is_one_of(kPassing, key)) continue;
    const nlohmann::json a = base.value(key, nlohmann::json()),
                         b = candidate.value(key, nlohmann::json());
    const bool decisive = is_one_of(kDecisive, key);
    if (a == b) continue;
    if (!is_known(a) || !is_known(b)) {
      if (decisive) result.unknown.push_back(key);
      continue;
    }
    (decisive ? result.decisive : result.others)
        .push_back(fmt::format("{}: {} in the base, {} in the candidate", key, shown(a), shown(b)));
  }
  if (base.empty() || candidate.empty()) result.unknown.emplace_back("context");
  if (!result.others.empty() || !result.unknown.empty())
    result.level = Likeness::Level::kComparable;
  if (!result.decisive.empty()) result.level = Likeness::Level::kNot;
  return result;
}

}  // namespace howmany::reports
