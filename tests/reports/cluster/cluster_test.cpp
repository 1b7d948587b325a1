// SPDX-License-Identifier: Apache-2.0
// Tests cluster files and the times of collectives.
#include "reports/cluster/cluster.h"

#include <gtest/gtest.h>

#include <string>

#include "core/base/error.h"
#include "reports/cluster/from_backend.h"
#include "tests/support/message_of.h"

namespace howmany::reports {
namespace {

const std::string kStart = "name = \"x\"\ndevice = \"A100\"\nsource = \"here\"\n";
const std::string kFour = kStart + "devices_per_node = 4\n";
const std::string kNode = kFour + "[node]\nbusbw_gb_per_s = 100\nlatency_us = 20\n";
const std::string kNetwork = "[network]\nlinks = 2\ngbit_per_s = 100\nshare = 1\nlatency_us = 10\n";

Cluster parsed(const std::string& text) { return parse_cluster(text, "x.toml"); }

std::string reason(const std::string& text) {
  return message_of<InputError>([&] { parsed(text); });
}

TEST(Cluster, TimeInANodeIsLatencyAndBytesOverBandwidth) {
  const Cluster c = parsed(kNode);
  for (const double bytes : {4096.0, 3e6, 25e6, 1e9, 4e9})
    for (const int n : {2, 4})
      EXPECT_NEAR(c.seconds(Collective::kAllReduce, bytes, n),
                  20e-6 + 2.0 * (n - 1) / n * bytes / 100e9, 2e-6 + bytes * 1e-13)
          << bytes << " on " << n;
  EXPECT_EQ(c.seconds(Collective::kAllReduce, 1e9, 1), 0);
}

TEST(Cluster, EachNumberOfDevicesMayHaveItsBandwidth) {
  const Cluster c = parsed(kFour + "[node]\nlatency_us = 20\nbusbw_gb_per_s = {2 = 40, 4 = 20}\n");
  const auto seconds = [&](int n) { return c.seconds(Collective::kAllReduce, 1e9, n); };
  EXPECT_NEAR(seconds(2), 20e-6 + 1e9 / 40e9, 1e-5);
  EXPECT_NEAR(seconds(4), 20e-6 + 1.5e9 / 20e9, 1e-5);
  EXPECT_NEAR(seconds(3), (seconds(2) + seconds(4)) / 2, 1e-9);
  EXPECT_NE(reason(kFour + "[node]\nlatency_us = 20\nbusbw_gb_per_s = {2 = 40}\n"), "");
  EXPECT_NE(reason(kFour + "[node]\nlatency_us = 20\nbusbw_gb_per_s = {4 = 0}\n"), "");
  EXPECT_NE(reason(kFour + "[node]\nlatency_us = 20\nbusbw_gb_per_s = {5 = 1, 4 = 1}\n"), "");
}

TEST(Cluster, TheNodesMayBeThoseOfABuiltInOne) {
  const std::string start = "name = \"mine\"\nsource = \"here\"\nnode_of = ";
  const Cluster c = parsed(start + "\"a100x8\"\n" + kNetwork), a100 = find_cluster("a100x8");
  EXPECT_EQ(c.device, a100.device);
  EXPECT_EQ(c.memory_gb, a100.memory_gb);
  EXPECT_FALSE(c.cores_per_node);
  EXPECT_EQ(parsed("cores_per_node = 64\n" + start + "\"a100x8\"\n").cores_per_node, 64);
  EXPECT_NE(reason("cores_per_node = 0\n" + start + "\"a100x8\"\n"), "");
  EXPECT_EQ(c.seconds(Collective::kAllReduce, 1e8, 8),
            a100.seconds(Collective::kAllReduce, 1e8, 8));
  EXPECT_EQ(c.network->gbit_per_s, 100);
  EXPECT_FALSE(parsed(start + "\"a100x8\"\n").network);
  EXPECT_EQ(reason(start + "\"a100\"\n").substr(0, 18), "x.toml:3: node_of:");
  EXPECT_EQ(reason(start + "\"a100x8\"\ndevices_per_node = 4\n").substr(0, 27),
            "x.toml:4: devices_per_node:");
}

TEST(Cluster, MeasuredTimesAreMetAndInterpolated) {
  const Cluster c = parsed(kFour +
                           "[node.all_reduce_us]\n2 = [[1000, 10], [100000, 1000]]\n"
                           "4 = [[1000, 30], [100000, 3000]]\n");
  const auto us = [&](double bytes, int n) {
    return 1e6 * c.seconds(Collective::kAllReduce, bytes, n);
  };
  EXPECT_NEAR(us(1000, 2), 10, 1e-9);
  EXPECT_NEAR(us(10, 2), 10, 1e-9);       // below the smallest
  EXPECT_NEAR(us(10'000, 2), 100, 1e-9);  // a power law
  EXPECT_NEAR(us(1e6, 2), 10'000, 1e-9);  // above the largest
  EXPECT_NEAR(us(1000, 3), 20, 1e-9);     // between two numbers
  EXPECT_NEAR(us(100'000, 4), 3000, 1e-9);
}

TEST(Cluster, AcrossNodesTheSlowerPartDecides) {
  const Cluster c = parsed(kNode + kNetwork);
  const double network = 2.0 * 7 / 8 * 1e9 / 25e9;
  EXPECT_NEAR(c.seconds(Collective::kAllReduce, 1e9, 8), network + 2 * 10e-6, 1e-9);
  EXPECT_NEAR(c.seconds(Collective::kAllReduce, 1e9, 64), 2.0 * 63 / 64 * 1e9 / 25e9 + 8 * 10e-6,
              1e-9);
  const double node = c.seconds(Collective::kAllReduce, 1024, 4);
  EXPECT_NEAR(c.seconds(Collective::kAllReduce, 1024, 8), node + 2 * 10e-6, 1e-9);
}

TEST(Cluster, OtherCollectivesMoveLess) {
  const Cluster c = parsed(kNode);
  const double all = c.seconds(Collective::kAllReduce, 4e9, 4);
  EXPECT_NEAR(c.seconds(Collective::kReduceScatter, 4e9, 4) / all, 0.5, 0.01);
  EXPECT_NEAR(c.seconds(Collective::kAllGather, 4e9, 4) / all, 0.5, 0.01);
  EXPECT_NEAR(c.seconds(Collective::kBroadcast, 4e9, 4) / all, 4.0 / 6, 0.01);
}

TEST(Cluster, RefusesWhatItKnowsNothingAbout) {
  EXPECT_NE(parsed(kNode).refusal(5), "");
  EXPECT_THROW(parsed(kNode).seconds(Collective::kAllReduce, 1, 5), InputError);
  const Cluster limited =
      parsed(kFour + "max_devices = 8\n" + kNode.substr(kFour.size()) + kNetwork);
  EXPECT_EQ(limited.refusal(8), "");
  EXPECT_NE(limited.refusal(9), "");
}

TEST(Cluster, ErrorsNameFileLineAndKey) {
  EXPECT_EQ(reason(kNode + "colour = 1\n"), "x.toml:8: node.colour: unknown key");
  EXPECT_EQ(reason("name = \"x\"\nname = 2\n").substr(0, 9), "x.toml:2:");
  EXPECT_EQ(reason(kStart + "devices_per_node = 0\n[node]\n").substr(0, 27),
            "x.toml:4: devices_per_node:");
  EXPECT_NE(reason(kFour), "");
  EXPECT_NE(reason(kFour + "[node]\nlatency_us = 1\n"), "");
  EXPECT_NE(reason(kFour + "[node]\nlatency_us = nan\nbusbw_gb_per_s = 1\n"), "");
  EXPECT_NE(reason(kFour + "[node.all_reduce_us]\n2 = [[1, 2]]\n"), "");          // none on 4
  EXPECT_NE(reason(kFour + "[node.all_reduce_us]\n4 = [[2, 2], [1, 3]]\n"), "");  // sizes shrink
  EXPECT_NE(reason(kFour + "[node.all_reduce_us]\n4 = [[2, -2]]\n"), "");
  EXPECT_NE(reason(kFour + "[node.all_reduce_us]\nfour = [[2, 2]]\n"), "");
  EXPECT_NE(reason("name = \"../x\"\n" + kNode.substr(11)), "");
}

TEST(Cluster, BuiltInOnesHaveSourcesAndGrowWithBytes) {
  const std::vector<Cluster> all = built_in_clusters();
  ASSERT_GE(all.size(), 5U);
  for (const Cluster& c : all) {
    EXPECT_EQ(find_cluster(c.name).source, c.source);
    EXPECT_NE(c.source, "");
    for (const int n : {2, 3, c.devices_per_node, 2 * c.devices_per_node, 1024}) {
      if (!c.refusal(n).empty()) continue;
      double before = 0;
      for (double bytes = 1 << 20; bytes < 1e11; bytes *= 4) {
        const double now = c.seconds(Collective::kAllReduce, bytes, n);
        EXPECT_GT(now, before) << c.name << " " << n;
        before = now;
      }
    }
  }
}

TEST(Cluster, CoresOfACpuCluster) {
  const std::string text = kNode + "[cores]\nus_per_call = 100\nus_per_mib = 1048.576\n";
  const auto table = cost_table(parsed(text), 4);
  EXPECT_NEAR(table.at("core_s").at(0).get<double>(), 100e-6, 1e-12);
  EXPECT_NEAR(table.at("core_s").at(1).get<double>(), 1e-9, 1e-15);
  EXPECT_FALSE(cost_table(parsed(kNode), 4).contains("core_s"));
  EXPECT_NE(reason(kNode + "[cores]\nus_per_call = 100\n"), "");
}

TEST(Cluster, WhatBackendMeasuredIsReadBack) {
  Summary summary;
  summary.context["howmany_request"] = {{"devices", "cpu:0,cpu:1"}};
  summary.answer["backend"] = {{"recommended", "torch:gloo"}};
  for (const double bytes : {1024.0, 1048576.0, 16777216.0}) {
    Measurement m{"backend", "all_reduce/torch:gloo", {{"devices", "2"}}, {}, {}};
    m.parameters["bytes"] = std::to_string(static_cast<int64_t>(bytes));
    m.metrics["median_s"] = {1e-4 + bytes * 1e-9, "s", {}, {}, 9, "iterations"};
    m.metrics["core_s"] = {2e-4 + bytes * 2e-9, "s", {}, {}, 9, "rounds"};
    summary.measurements.push_back(m);
  }
  const Cluster c = parsed(cluster_toml(summary, ""));
  EXPECT_EQ(c.device, kCpuDevice);
  EXPECT_EQ(c.devices_per_node, 2);
  EXPECT_NEAR(c.seconds(Collective::kAllReduce, 1048576, 2), 1e-4 + 1048576e-9, 1e-8);
  ASSERT_TRUE(c.cores);
  EXPECT_NEAR(c.cores->per_call_s, 2e-4, 1e-6);
  EXPECT_NEAR(c.cores->per_byte_s, 2e-9, 1e-11);
  EXPECT_THROW(cluster_toml(summary, "gloo"), InputError);
}

// Published: 229 GB/s on 8 A100 (vTrain, 1 GiB), 231 (SuperBench).
TEST(Cluster, BusBandwidthOfA100IsThePublishedOne) {
  const double seconds = find_cluster("a100x8").seconds(Collective::kAllReduce, 1 << 30, 8);
  EXPECT_NEAR(1.75 * (1 << 30) / seconds * 1e-9, 231, 2);
}

double bus_bandwidth(const char* name, double bytes, int devices) {
  const double seconds = find_cluster(name).seconds(Collective::kAllReduce, bytes, devices);
  return 2.0 * (devices - 1) / devices * bytes / seconds * 1e-9;
}

// Published: 125 GB/s on 8 GCDs and 85 on 16 with 128 MiB (LUMI's tests).
TEST(Cluster, BusBandwidthOfMi250xIsThePublishedOne) {
  EXPECT_NEAR(bus_bandwidth("mi250x", 128 << 20, 8), 125, 3);
  EXPECT_NEAR(bus_bandwidth("mi250x", 128 << 20, 16), 85, 1);
}

// Published on 8 MI300X: 312.9 GB/s with 4 GiB, and the sizes of ROCm/rccl#1562.
TEST(Cluster, BusBandwidthOfMi300xIsThePublishedOne) {
  EXPECT_NEAR(bus_bandwidth("mi300x8", 4.0 * (1 << 30), 8), 312.9, 1);
  for (const auto& [bytes, published] :
       {std::pair(128 << 20, 293.07), {64 << 20, 271.93}, {32 << 20, 239.86}, {16 << 20, 192.22}})
    EXPECT_NEAR(bus_bandwidth("mi300x8", bytes, 8) / published, 1, 0.07) << bytes;
}

TEST(Cluster, CostTableHoldsEveryKind) {
  const auto table = cost_table(find_cluster("h100x8"), 16);
  EXPECT_EQ(table.at("world"), 16);
  for (const char* kind :
       {"all_reduce", "reduce_scatter", "all_gather", "broadcast", "send", "send_between"})
    EXPECT_GT(table.at(kind).size(), 20U);
  EXPECT_EQ(table.at("devices_per_node"), 8);
}

TEST(Cluster, AMessageBetweenNodesUsesOneLink) {
  const Cluster c = find_cluster("h100x8");
  const double bytes = 1 << 30, link = c.network->bytes_per_s() / c.network->links;
  EXPECT_NEAR(c.send_seconds(bytes, true, 1), bytes / link, 0.01 * bytes / link);
  EXPECT_DOUBLE_EQ(c.send_seconds(bytes, true, 8), c.send_seconds(bytes, true, 1)) << "8 links";
  EXPECT_LT(c.send_seconds(bytes, false, 1), 0.5 * c.send_seconds(bytes, true, 1));
  const Cluster slow = find_cluster("v100x8-25g");
  ASSERT_EQ(slow.network->links, 1);
  EXPECT_NEAR(slow.send_seconds(bytes, true, 8) / slow.send_seconds(bytes, true, 1), 8, 0.01);
  const Cluster alone = parsed(kNode);
  EXPECT_GT(alone.send_seconds(bytes, false, 1), 0);
  EXPECT_THROW(alone.send_seconds(bytes, true, 1), InputError);
}

// Eight groups of every eighth device share the links of each node.
TEST(Cluster, GroupsOfEverySthDeviceShareTheLinks) {
  const Cluster c = find_cluster("h100x8");
  const double bytes = 1 << 30;
  const auto time = [&](int devices, int stride) {
    return c.seconds(Collective::kAllReduce, bytes, devices, stride);
  };
  EXPECT_NEAR(time(2, 8), 8 * bytes / c.network->bytes_per_s(), 0.01 * time(2, 8));
  EXPECT_DOUBLE_EQ(time(4, 2), time(4, 1));  // within a node
  EXPECT_GT(time(8, 8), 3 * time(64, 1));
  EXPECT_DOUBLE_EQ(time(8, 16), time(8, 8));  // one device of a node, of every second node
}

TEST(Cluster, CostTableOfAMeshHoldsItsGroups) {
  const Cluster c = find_cluster("h100x8");
  std::map<std::pair<int, int>, double> all;
  const auto table = cost_table_with_groups(c, 16);
  for (const auto& group : table.at("groups"))
    all[{group.at("ranks"), group.at("stride")}] = group.at("all_reduce").at(10).at(1);
  EXPECT_EQ(all.size(), 9U);  // 2 x 1, 2, 4, 8; 4 x 1, 2, 4; 8 x 1, 2
  EXPECT_DOUBLE_EQ(all.at({2, 8}), c.seconds(Collective::kAllReduce, 1 << 20, 2, 8));
}

}  // namespace
}  // namespace howmany::reports
