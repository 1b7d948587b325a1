// SPDX-License-Identifier: Apache-2.0
#include "reports/cluster/cluster_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/base/error.h"
#include "core/base/text/table.h"
#include "reports/results/toml_keys.h"

namespace howmany::reports {
namespace {

constexpr double kMaxDevicesOfNode = 1024, kMaxDevices = 16'384, kMaxCoresOfNode = 4096;
constexpr size_t kMaxPoints = 1000;
constexpr double kMicro = 1e-6, kGiga = 1e9, kMebibyte = 1 << 20;
constexpr double kLargest = 1e12;  // of any number

std::pair<double, double> read_point(const TomlKeys& keys, const toml::node& node,
                                     const std::string& key) {
  const toml::array* const pair = node.as_array();
  if (pair == nullptr || pair->size() != 2) keys.fail(&node, key, "expected [bytes, microseconds]");
  return {keys.number_of(*pair->get(0), key, 1, kLargest),
          keys.number_of(*pair->get(1), key, 1e-3, kLargest) * kMicro};
}

std::vector<std::pair<double, double>> read_points(const TomlKeys& keys, const toml::node& node,
                                                   const std::string& key) {
  const toml::array* const points = node.as_array();
  if (points == nullptr || points->empty() || points->size() > kMaxPoints)
    keys.fail(&node, key, "expected a list of [bytes, microseconds]");
  std::vector<std::pair<double, double>> all;
  for (const toml::node& one : *points) {
    all.push_back(read_point(keys, one, key));
    if (all.size() > 1 && all.back().first <= all[all.size() - 2].first)
      keys.fail(&one, key, "the bytes must grow");
  }
  return all;
}

// Calls `read` for each number of devices in a table, of which `most` must be one.
template <typename Read>
void for_each_count(TomlKeys& keys, const toml::table& table, const char* name, int most,
                    const Read& read) {
  TomlKeys counts = keys.inside(table, name);
  bool has_most = false;
  for (const auto& [count, value] : table) {
    const std::string key(count.str());
    int devices = 0;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), devices);
    if (error != std::errc() || end != key.data() + key.size() || devices < 2 || devices > most)
      counts.fail(&value, key, fmt::format("expected a number of devices from 2 to {}", most));
    read(devices, counts, value, key);
    has_most |= devices == most;
  }
  if (!has_most) keys.fail(&table, name, fmt::format("that of {} devices is missing", most));
}

// Dense enough for the power law between two.
std::vector<std::pair<double, double>> points_of(double latency, double bytes_per_s, int n) {
  std::vector<std::pair<double, double>> points;
  for (double bytes = 1024; bytes <= 1e11; bytes *= 2)
    points.emplace_back(bytes, latency + 2.0 * (n - 1) / n * bytes / bytes_per_s);
  return points;
}

double bandwidth_of(const TomlKeys& keys, const toml::node& node, const std::string& key) {
  return keys.number_of(node, key, 1e-6, 1e6) * kGiga;
}

// One bandwidth for all numbers of devices, or one for each.
void read_bandwidths(TomlKeys& keys, int most, NodeLinks& node) {
  constexpr const char* kKey = "busbw_gb_per_s";
  const double latency = keys.number("latency_us", 1e-3, 1e9) * kMicro;
  const toml::node& given = keys.need(kKey);
  if (const toml::table* const by_count = given.as_table()) {
    for_each_count(keys, *by_count, kKey, most,
                   [&](int n, TomlKeys& counts, const toml::node& value, const std::string& key) {
                     node.all_reduce[n] = points_of(latency, bandwidth_of(counts, value, key), n);
                   });
    return;
  }
  const double bandwidth = bandwidth_of(keys, given, kKey);
  for (int n = 2; n <= most; n = n == most ? most + 1 : std::min(2 * n, most))
    node.all_reduce[n] = points_of(latency, bandwidth, n);
}

NodeLinks read_node(TomlKeys& cluster, int most) {
  NodeLinks node;
  const toml::table* const table = cluster.table("node");
  if (table == nullptr) {
    if (most > 1)
      cluster.fail(nullptr, "node", "is missing: how are the devices of a node linked?");
    return node;
  }
  TomlKeys keys = cluster.inside(*table, "node");
  if (const toml::table* const measured = keys.table("all_reduce_us")) {
    for_each_count(keys, *measured, "all_reduce_us", most,
                   [&](int n, TomlKeys& counts, const toml::node& value, const std::string& key) {
                     node.all_reduce[n] = read_points(counts, value, key);
                   });
  } else {
    read_bandwidths(keys, most, node);
  }
  keys.close();
  return node;
}

std::optional<Network> read_network(TomlKeys& cluster) {
  const toml::table* const table = cluster.table("network");
  if (table == nullptr) return {};
  TomlKeys keys = cluster.inside(*table, "network");
  Network network;
  network.links = keys.number("links", 1, 1024);
  network.gbit_per_s = keys.number("gbit_per_s", 1e-3, 1e5);
  network.share = keys.number_if("share", 0.01, 1).value_or(network.share);
  if (const auto us = keys.number_if("latency_us", 1e-3, 1e9)) network.latency_s = *us * kMicro;
  keys.close();
  return network;
}

std::optional<CallCores> read_cores(TomlKeys& cluster) {
  const toml::table* const table = cluster.table("cores");
  if (table == nullptr) return {};
  TomlKeys keys = cluster.inside(*table, "cores");
  const CallCores use{keys.number("us_per_call", 0, 1e9) * kMicro,
                      keys.number("us_per_mib", 0, 1e9) * kMicro / kMebibyte};
  keys.close();
  return use;
}

void check_name(TomlKeys& keys, const std::string& name) {
  const bool good = std::ranges::all_of(
      name, [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_'; });
  if (!good || name.size() > 60)
    keys.fail(&keys.need("name"), "name", "expected letters and digits");
}

// The device, the links within a node and the memory: those of a known cluster, or the file's own.
Cluster read_nodes(TomlKeys& keys, const std::vector<Cluster>& known) {
  Cluster cluster;
  if (const toml::node* const other = keys.find("node_of")) {
    const auto found = std::ranges::find(known, keys.text("node_of"), &Cluster::name);
    if (found == known.end())
      keys.fail(other, "node_of", "no built-in cluster has that name (howmany cluster list)");
    cluster.device = found->device;
    cluster.devices_per_node = found->devices_per_node;
    cluster.node = found->node;
    cluster.memory_gb = found->memory_gb;
    return cluster;
  }
  cluster.device = keys.text("device");
  cluster.devices_per_node = keys.count("devices_per_node", kMaxDevicesOfNode);
  cluster.node = read_node(keys, cluster.devices_per_node);
  return cluster;
}

Cluster read_cluster(const toml::table& table, const std::string& source,
                     const std::vector<Cluster>& known) {
  TomlKeys keys(table, source);
  Cluster cluster = read_nodes(keys, known);
  cluster.name = keys.text("name");
  check_name(keys, cluster.name);
  cluster.source = keys.text("source");
  cluster.network = read_network(keys);
  cluster.cores = read_cores(keys);
  if (const auto memory = keys.number_if("memory_gb", 0.1, 1e5)) cluster.memory_gb = memory;
  if (table.contains("cores_per_node"))
    cluster.cores_per_node = keys.count("cores_per_node", kMaxCoresOfNode);
  cluster.price_per_device_hour = keys.number_if("price_per_device_hour", 0, 1e9);
  if (table.contains("max_devices")) cluster.max_devices = keys.count("max_devices", kMaxDevices);
  keys.close();
  return cluster;
}

}  // namespace

Cluster read_cluster_file(std::string_view text, const std::string& source,
                          const std::vector<Cluster>& known) {
  return read_cluster(parse_toml(text, source), source, known);
}

std::string toml_text(const std::string& text) { return nlohmann::json(printable(text)).dump(); }

std::vector<Cluster> read_cluster_list(std::string_view text, const std::string& source) {
  const toml::table file = parse_toml(text, source);
  std::vector<Cluster> all;
  for (const toml::node& one : *file["cluster"].as_array())
    all.push_back(read_cluster(*one.as_table(), source, all));
  return all;
}

}  // namespace howmany::reports
