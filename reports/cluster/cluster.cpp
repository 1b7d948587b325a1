// SPDX-License-Identifier: Apache-2.0
#include "reports/cluster/cluster.h"

#include <fmt/format.h>

#include <embedded/reports/data/clusters.toml.h>
#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/base/error.h"
#include "core/base/text/files.h"
#include "core/base/text/table.h"
#include "reports/cluster/cluster_file.h"
#include "reports/cluster/from_table.h"

namespace howmany::reports {
namespace {

constexpr double kSmallestBytes = 1024, kLargestBytes = 64.0 * (1 << 30);

// nccl-tests' factor between the time of a collective and the bandwidth of a link.
double factor(Collective kind, double n) {
  switch (kind) {
    case Collective::kAllReduce:
      return 2 * (n - 1) / n;
    case Collective::kReduceScatter:
    case Collective::kAllGather:
      return (n - 1) / n;
    case Collective::kBroadcast:
      return 1;
  }
  return 0;
}

double at_bytes(const std::vector<std::pair<double, double>>& points, double bytes) {
  if (bytes <= points.front().first) return points.front().second;
  if (bytes >= points.back().first) return points.back().second * bytes / points.back().first;
  const auto up = std::ranges::lower_bound(points, bytes, {}, &std::pair<double, double>::first);
  const auto& [b1, t1] = *up;
  const auto& [b0, t0] = *(up - 1);
  return t0 * std::pow(t1 / t0, std::log(bytes / b0) / std::log(b1 / b0));
}

// The time of an all-reduce on `devices` of one node.
double in_node(const NodeLinks& node, double bytes, int devices) {
  const auto up = node.all_reduce.lower_bound(devices);
  const double above = at_bytes(up->second, bytes);
  if (up->first == devices || up == node.all_reduce.begin()) return above;
  const auto down = std::prev(up);
  const double below = at_bytes(down->second, bytes);
  return below + (above - below) * (devices - down->first) / (up->first - down->first);
}

double all_reduce(const Cluster& c, double bytes, int devices, int stride) {
  if (devices * stride <= c.devices_per_node) return in_node(c.node, bytes, devices);
  const int on_a_node = std::max(1, c.devices_per_node / stride);
  const double nodes = std::ceil(static_cast<double>(devices) / on_a_node);
  const double share = c.network->bytes_per_s() / std::min(stride, c.devices_per_node);
  const double network = factor(Collective::kAllReduce, devices) * bytes / share;
  const double node = on_a_node > 1 ? in_node(c.node, bytes, on_a_node) : 0;
  return std::max(node, network) + 2 * std::ceil(std::log2(nodes)) * c.network->latency_s;
}

void add_times(nlohmann::ordered_json& table, const Cluster& cluster, int devices, int stride) {
  for (const auto& [name, kind] : kCollectives)
    for (double bytes = kSmallestBytes; bytes <= kLargestBytes; bytes *= 2)
      table[name].push_back({bytes, cluster.seconds(kind, bytes, devices, stride)});
  for (double bytes = kSmallestBytes; bytes <= kLargestBytes; bytes *= 2) {
    table["send"].push_back({bytes, cluster.send_seconds(bytes, false, stride)});
    if (cluster.network)
      table["send_between"].push_back({bytes, cluster.send_seconds(bytes, true, stride)});
  }
}

}  // namespace

std::string Cluster::refusal(int devices) const {
  if (devices > devices_per_node && !network)
    return fmt::format("{} has no [network]: nothing is known beyond its {} devices of a node",
                       name, devices_per_node);
  if (max_devices && devices > *max_devices)
    return fmt::format("{} gives a job {} devices at most", name, *max_devices);
  return "";
}

double Cluster::seconds(Collective kind, double bytes, int devices, int stride) const {
  if (const std::string why = refusal(devices * stride); !why.empty()) throw InputError(why);
  if (devices < 2) return 0;
  const double share = factor(kind, devices) / factor(Collective::kAllReduce, devices);
  return all_reduce(*this, bytes * share, devices, stride);
}

double Cluster::send_seconds(double bytes, bool between, int together) const {
  if (!between) return seconds(Collective::kBroadcast, bytes, 2);
  if (!network) throw InputError(refusal(devices_per_node + 1));
  const double share = network->bytes_per_s() / std::min(together, devices_per_node);
  const double link = network->bytes_per_s() / network->links;
  return network->latency_s + bytes / std::min(link, share);
}

Cluster parse_cluster(const std::string& text, const std::string& source) {
  return read_cluster_file(is_collective_table(text) ? table_toml(text, source) : text, source,
                           built_in_clusters());
}

std::vector<Cluster> built_in_clusters() {
  std::vector<Cluster> all = read_cluster_list(embedded::kClusters, "clusters.toml");
  std::ranges::sort(all, {}, &Cluster::name);
  return all;
}

Cluster find_cluster(const std::string& name_or_path) {
  for (const Cluster& one : built_in_clusters())
    if (one.name == name_or_path) return one;
  if (!std::filesystem::is_regular_file(name_or_path))
    throw InputError(fmt::format(
        "no cluster and no file \"{}\"; howmany cluster list names those that are built in",
        printable(name_or_path.substr(0, 200))));
  return parse_cluster(read_text(name_or_path), name_or_path);
}

nlohmann::ordered_json cost_table(const Cluster& cluster, int devices) {
  nlohmann::ordered_json table = {{"world", devices}};
  table["devices_per_node"] = cluster.devices_per_node;
  add_times(table, cluster, devices, 1);
  if (cluster.cores) table["core_s"] = {cluster.cores->per_call_s, cluster.cores->per_byte_s};
  return table;
}

nlohmann::ordered_json cost_table_with_groups(const Cluster& cluster, int devices) {
  nlohmann::ordered_json table = cost_table(cluster, devices);
  for (int ranks = 2; ranks < devices; ++ranks)
    for (int stride = 1; ranks * stride <= devices; ++stride)
      if (devices % (ranks * stride) == 0) {
        nlohmann::ordered_json group = {{"ranks", ranks}, {"stride", stride}};
        add_times(group, cluster, ranks, stride);
        table["groups"].push_back(std::move(group));
      }
  return table;
}

}  // namespace howmany::reports
