// SPDX-License-Identifier: Apache-2.0
#include "reports/cluster/from_backend.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <vector>

#include "core/base/schema/context.h"
#include "core/base/schema/metrics.h"
#include "core/base/schema/parameters.h"
#include "core/base/text/json.h"
#include "reports/cluster/cluster.h"
#include "reports/cluster/cluster_file.h"
#include "reports/results/cell.h"
#include "reports/results/curve.h"
#include "reports/results/plain_json.h"

namespace howmany::reports {
namespace {

// Devices -> bytes -> seconds.
using Times = std::map<int, std::map<double, double>>;

Times all_reduce_times(const Summary& summary, const std::string& backend, const char* metric) {
  Times times;
  for (const Measurement& m : summary.measurements) {
    if (!is_timed(m) || op_of(m) != "all_reduce" || backend_of(m) != backend) continue;
    const int devices = count_of(m, parameter::kDevices);
    const double bytes = number_of(m, parameter::kBytes), seconds = value_of(m, metric);
    if (devices < 2 || !(bytes >= 1) || !(seconds > 0)) continue;
    double& best = times[devices].try_emplace(bytes, INFINITY).first->second;
    best = std::min(best, seconds);
  }
  return times;
}

// The table [cores], from the most devices; empty if the CPU time was not measured.
std::string cores_toml(const Times& times) {
  if (times.empty()) return "";
  Curve curve;
  for (const auto& [bytes, seconds] : times.rbegin()->second) curve.push_back({bytes, seconds});
  const AlphaBeta fit = fit_alpha_beta(curve);
  return fmt::format("\n[cores]\nus_per_call = {:.6g}\nus_per_mib = {:.6g}\n", fit.latency * 1e6,
                     fit.seconds_per_byte * (1 << 20) * 1e6);
}

std::string recommended(const Summary& summary) {
  const nlohmann::json& answer = json_member(json_member(summary.answer, "backend"), "recommended");
  if (!answer.is_string())
    throw InputError("the run recommends no backend; name one with --backend");
  return answer.get<std::string>();
}

// The name of the GPUs, or "cpu".
std::string device_of(const Summary& summary) {
  const nlohmann::json& request = json_member(summary.context, "howmany_request");
  const nlohmann::json& devices = json_member(request, "devices");
  if (devices.is_string() && devices.get<std::string>().starts_with("cpu")) return kCpuDevice;
  const nlohmann::json& name = json_member(summary.context, context::kGpu);
  return name.is_string() && name != "" ? name.get<std::string>() : kCpuDevice;
}

}  // namespace

std::string cluster_toml(const Summary& summary, const std::string& backend) {
  const std::string over = backend.empty() ? recommended(summary) : backend;
  const Times times = all_reduce_times(summary, over, metric::kMedianS);
  if (times.empty())
    throw InputError(
        fmt::format("no all_reduce over {} was measured; run howmany backend --ops "
                    "all_reduce first",
                    printable(over)));
  const nlohmann::json& date = json_member(summary.context, "howmany_date");
  std::string text = fmt::format(
      "name = \"here\"\ndevice = {}\ndevices_per_node = {}\nsource = {}\n\n"
      "[node.all_reduce_us]  # bytes and microseconds, by the number of devices\n",
      toml_text(device_of(summary)), times.rbegin()->first,
      toml_text(fmt::format("howmany backend over {}, {}", over,
                            date.is_string() ? date.get<std::string>() : "no date")));
  for (const auto& [devices, points] : times) {
    std::vector<std::string> pairs;
    for (const auto& [bytes, seconds] : points)
      pairs.push_back(fmt::format("[{:.0f}, {:.6g}]", bytes, seconds * 1e6));
    text += fmt::format("{} = [{}]\n", devices, fmt::join(pairs, ", "));
  }
  if (device_of(summary) == kCpuDevice)
    text += cores_toml(all_reduce_times(summary, over, metric::kCoreS));
  return text +
         "\n# Between nodes, if there are several:\n# [network]\n# links = 8\n# gbit_per_s = 400\n";
}

}  // namespace howmany::reports
