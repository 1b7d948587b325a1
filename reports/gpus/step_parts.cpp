// SPDX-License-Identifier: Apache-2.0
#include "reports/gpus/step_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "core/base/schema/metrics.h"
#include "core/base/schema/parameters.h"
#include "core/base/text/format.h"
#include "core/base/text/table.h"

namespace howmany::reports {
namespace {

double metric_value(const Measurement& m, const std::string& name) {
  const auto it = m.metrics.find(name);
  return it == m.metrics.end() ? NAN : it->second.value;
}

std::string text_of(const Measurement& m, const char* key) {
  const auto it = m.parameters.find(key);
  return it == m.parameters.end() ? "" : it->second;
}

using Key = std::array<std::string, 4>;  // model, mode, backend, devices
using Profiled = std::map<Key, const Measurement*>;

// Returns the first profiled measurement of each configuration.
Profiled profiled_cases(const Summary& summary) {
  Profiled all;
  for (const Measurement& m : summary.measurements) {
    if (!(metric_value(m, "profile_step_s") > 0)) continue;
    all.try_emplace({text_of(m, parameter::kModel), text_of(m, parameter::kMode),
                     text_of(m, parameter::kBackend), text_of(m, parameter::kDevices)},
                    &m);
  }
  return all;
}

std::string share(const Measurement& m, const std::string& part) {
  return format_percent(metric_value(m, part) / metric_value(m, "profile_step_s"));
}

// Returns "compute 80 %, communication 12 % (8 % more during compute), none of these 8 %". `of`:
// "profile_" or "profile_gpu_".
std::string parts(const Measurement& m, const std::string& of) {
  std::string text;
  for (const auto& [name, word] : kStepParts) {
    const bool talks = std::string_view(word) == "communication";
    const bool hidden = talks && metric_value(m, of + "hidden_comm_s") > 0;
    if (!(metric_value(m, of + name) > 0) && !hidden) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", word, share(m, of + name));
    if (hidden) text += fmt::format(" ({} more during compute)", share(m, of + "hidden_comm_s"));
  }
  return text;
}

std::string line(const Measurement& m, const Point& p) {
  const std::string how =
      p.mode == "single" ? "1 device" : fmt::format("{} devices, {}", p.devices, printable(p.mode));
  const std::string gpu = parts(m, "profile_gpu_");
  return fmt::format("  {}: {}, {}\n{}", how, format_seconds(metric_value(m, "profile_step_s")),
                     parts(m, "profile_"), gpu.empty() ? "" : "    the GPU: " + gpu + "\n");
}

// Reports the case with the largest cost.
std::string cost(const Summary& summary) {
  double most = 0;
  for (const Measurement& m : summary.measurements)
    most = std::fmax(most, metric_value(m, metric::kProfileCostFraction));
  if (most == 0) return "Recording it cost too little to be seen";
  return fmt::format("Recording it cost {} of a step at most", format_percent(most, 1));
}

// Returns what the trace and the shares lack, or "" if they are complete.
std::string missing(const Summary& summary) {
  constexpr std::pair<const char*, const char*> kKinds[] = {
      {metric::kProfileGpuLostRecords, "records of the GPU were lost"},
      {metric::kProfileGpuRefusedRecords, "records of the GPU were not understood"},
      {metric::kProfileDroppedSpans, "spans found no room"}};
  std::string text;
  for (const auto& [name, what] : kKinds) {
    double most = 0;
    for (const Measurement& m : summary.measurements) most = std::fmax(most, metric_value(m, name));
    if (most > 0)
      text += fmt::format("{}up to {} {}", text.empty() ? "" : ", ", format_count(most), what);
  }
  return text.empty() ? "" : fmt::format("Not whole: {}; shares may be too small.\n", text);
}

}  // namespace

std::string render_step_parts(const Summary& summary, const std::vector<Advice>& advice,
                              const std::string& folder) {
  const Profiled profiled = profiled_cases(summary);
  std::string text;
  for (const Advice& one : advice) {
    int most = 1;
    for (const Point& p : one.points) most = std::max(most, p.devices);
    std::string lines;
    for (const Point& p : one.points) {
      if (p.mode != "single" && (p.devices != most || most == 1)) continue;
      const auto m = profiled.find({one.model, p.mode, p.backend, std::to_string(p.devices)});
      if (m != profiled.end()) lines += line(*m->second, p);
    }
    if (!lines.empty())
      text += fmt::format("Time of a step of {} (rank 0, medians of profiled steps):\n",
                          printable(one.model)) +
              lines;
  }
  if (text.empty()) return text;
  text += cost(summary);
  if (!folder.empty()) text += fmt::format("; {}/trace.pftrace opens in ui.perfetto.dev", folder);
  return "\n" + text + ".\n" + missing(summary);
}

}  // namespace howmany::reports
