// SPDX-License-Identifier: Apache-2.0
// Clusters that need not be here: their nodes, links and the times of collectives on them.
//
// File. TOML. Its keys are those of reports/data/clusters.toml, which holds the clusters that are
//   built in; a file holds one. In short:
//     name = "ours"                    # letters, digits, "-" and "_"
//     device = "NVIDIA A100"           # the start of its name, or "cpu"
//     devices_per_node = 8             # device and devices_per_node: or
//     node_of = "a100x8"               #   those of a built-in cluster, with [node] and memory_gb
//     memory_gb = 80                   # optional, of a device; 1 GB = 1e9 bytes
//     cores_per_node = 128             # optional, CPU cores for the loaders of all its devices
//     price_per_device_hour = 2.5      # optional, in any currency
//     max_devices = 64                 # optional, of one job
//     source = "nccl-tests, 2026-11"   # where the figures are from
//     [node]                           # all-reduce within a node, by one of
//     busbw_gb_per_s = 230             #   bus bandwidth as nccl-tests defines it, also for each
//                                      #   number of devices, {4 = 35, 8 = 28}, and
//     latency_us = 35                  #   the time of a small message; or
//     all_reduce_us.8 = [[1024, 35.4], [8388608, 159.1]]   # bytes and times on 8 devices
//     [network]                        # absent: only one node
//     links = 8                        # network links of a node
//     gbit_per_s = 200                 # of a link
//     share = 0.94                     # of it that messages get; default 0.94
//     latency_us = 10                  # of one hop between nodes; default 10
//     [cores]                          # CPU clusters: what a call takes from the cores of a rank
//     us_per_call = 300
//     us_per_mib = 900
// Time of an all-reduce. Within a node: between two sizes by a power law through both; below the
//   smallest the time of the smallest; above the largest in proportion. Between two measured
//   numbers of devices, linear in the number. Across N nodes: the larger of the time in a whole
//   node and 2 (n - 1) / n bytes over the bandwidth of a node's links, plus 2 ceil(log2 N) hops.
//   The other collectives move (n - 1) / n (reduce-scatter, all-gather) or 1 (broadcast) instead of
//   2 (n - 1) / n times the bytes. A group of every s-th device shares the links of a node with
//   the s - 1 other groups.
// Time of a message. Within a node, that of a broadcast to one other device. Between nodes, a hop
//   and the bytes over one link, or over its share of all links if more devices send together.
// Sources. Bus bandwidth: nccl-tests, doc/PERFORMANCE.md. Share of a link: NVIDIA/nccl-tests#290.
//   Latency of a hop: src/graph/tuning.cc of NCCL (9.6 us, ring of the simple protocol).
// Thread safety. Values only; not tied to any thread.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace howmany::reports {

constexpr const char* kCpuDevice = "cpu";  // Cluster::device of CPU cores

enum class Collective { kAllReduce, kReduceScatter, kAllGather, kBroadcast };
// Their names in cost tables and logs.
constexpr std::pair<const char*, Collective> kCollectives[] = {
    {"all_reduce", Collective::kAllReduce},
    {"reduce_scatter", Collective::kReduceScatter},
    {"all_gather", Collective::kAllGather},
    {"broadcast", Collective::kBroadcast}};

struct NodeLinks {
  // Times of an all-reduce: devices -> (bytes, seconds), sorted by bytes. Not empty.
  std::map<int, std::vector<std::pair<double, double>>> all_reduce;
};

struct Network {
  double links = 1, gbit_per_s = 0, share = 0.94;
  double latency_s = 10e-6;
  double bytes_per_s() const { return links * gbit_per_s * 1e9 / 8 * share; }
};

struct CallCores {
  double per_call_s = 0, per_byte_s = 0;
};

struct Cluster {
  std::string name, device, source;
  int devices_per_node = 1;
  NodeLinks node;
  std::optional<Network> network;
  std::optional<CallCores> cores;
  std::optional<double> memory_gb;  // of a device
  std::optional<int> cores_per_node;
  std::optional<double> price_per_device_hour;
  std::optional<int> max_devices;

  // Returns the seconds of a collective of `bytes` (the buffer of one rank: all of it for
  // all-reduce and broadcast, the sum over ranks for the others) on `devices`. 0 if there is one
  // device. Throws InputError if the file has no times for that number.
  // `stride`: the devices are first, first + stride, ... and so are those of stride - 1 groups
  // more, which call at the same time. They share the links between nodes.
  double seconds(Collective kind, double bytes, int devices, int stride = 1) const;
  // Returns the seconds of a message of `bytes` from one device to another, while `together`
  // devices of a node send. `between`: the other one is on another node. Throws InputError if there
  // is no other node.
  double send_seconds(double bytes, bool between, int together) const;
  // Returns the reason why seconds() would throw; empty if it does not.
  std::string refusal(int devices) const;
};

// Parses the text of a cluster file, or a table of all-reduces (from_table.h). Throws InputError
// "SOURCE:LINE: KEY: reason".
Cluster parse_cluster(const std::string& text, const std::string& source);
std::vector<Cluster> built_in_clusters();  // by name
// Returns the built-in cluster of that name, else the one in that file. Throws InputError.
Cluster find_cluster(const std::string& name_or_path);

// The member "cost table" of a rehearsal (torch_hook/howmany_hook/rehearsal.py):
// {"world": 64, "devices_per_node": 8, "all_reduce": [[bytes, seconds], ...], "reduce_scatter":
// ...}, sizes from 1 KiB to 64 GiB, and "core_s": [per call, per byte] if the cores are given.
// "send" is within a node and "send_between" between nodes.
nlohmann::ordered_json cost_table(const Cluster& cluster, int devices);
// The same with "groups": [{"ranks": 8, "stride": 1, "all_reduce": ...}, ...], all of evenly spaced
// devices that divide the world.
nlohmann::ordered_json cost_table_with_groups(const Cluster& cluster, int devices);

}  // namespace howmany::reports
