#include "reports/gpus/step_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/schema/metrics.h"
#include "core/base/text/format.h"
#include "core/base/text/table.h"

namespace howmany::reports {
namespace {

double metric_value(const Measurement& m, const std::string& name) {
  const auto it = m.metrics.find(name);
  return it == m.metrics.end() ? NAN : it->second.value;
}

bool has(const Measurement& m, const char* key, const std::string& value) {
  const auto it = m.parameters.find(key);
  return it != m.parameters.end() && it->second == value;
}

const Measurement* profiled(const Summary& summary, const std::string& model, const Point& p) {
  for (const Measurement& m : summary.measurements)
    if (has(m, "model", model) && has(m, "mode", p.mode) && has(m, "backend", p.backend) &&
        has(m, "devices", std::to_string(p.devices)) && metric_value(m, "profile_step_s") > 0)
      return &m;
  return nullptr;
}

std::string share(const Measurement& m, const std::string& part) {
  return format_percent(metric_value(m, part) / metric_value(m, "profile_step_s"));
}

// Returns "compute 80 %, communication 12 % (8 % more beside compute), none of these 8 %". `of`:
// "profile_" or "profile_gpu_".
std::string parts(const Measurement& m, const std::string& of) {
  constexpr std::pair<const char*, const char*> kParts[] = {
      {"compute_s", "compute"}, {"optimizer_s", "optimizer"}, {"comm_s", "communication"},
      {"copy_s", "copies"},     {"data_s", "data"},           {"host_s", "none of these"},
      {"idle_s", "idle"}};
  std::string text;
  for (const auto& [name, word] : kParts) {
    const bool talks = std::string_view(word) == "communication";
    const bool hidden = talks && metric_value(m, of + "hidden_comm_s") > 0;
    if (!(metric_value(m, of + name) > 0) && !hidden) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", word, share(m, of + name));
    if (hidden) text += fmt::format(" ({} more beside compute)", share(m, of + "hidden_comm_s"));
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
  std::string text;
  for (const Advice& one : advice) {
    int most = 1;
    for (const Point& p : one.points) most = std::max(most, p.devices);
    std::string lines;
    for (const Point& p : one.points) {
      const Measurement* m = profiled(summary, one.model, p);
      const bool shown = p.mode == "single" || (p.devices == most && most > 1);
      if (m != nullptr && shown) lines += line(*m, p);
    }
    if (!lines.empty())
      text += fmt::format("Where a step of {} goes (rank 0, medians of profiled steps):\n",
                          printable(one.model)) +
              lines;
  }
  if (text.empty()) return text;
  text += cost(summary);
  if (!folder.empty()) text += fmt::format("; {}/trace.pftrace opens in ui.perfetto.dev", folder);
  return "\n" + text + ".\n" + missing(summary);
}

}  // namespace howmany::reports
