// SPDX-License-Identifier: Apache-2.0
#include "reports/cluster/from_table.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "core/base/error.h"
#include "reports/cluster/cluster.h"

namespace howmany::reports {
namespace {

constexpr const char* kHeading =
    "#                                            out-of-place                in-place\n"
    "#       size    count   type   redop    root     time   algbw   busbw #wrong     time   algbw "
    "  busbw #wrong\n"
    "#        (B)  (elements)                         (us)  (GB/s)  (GB/s)            (us)  (GB/s) "
    " "
    "(GB/s)\n";

// The ratio of busbw to algbw is that of `ranks`.
std::string row(double bytes, double us, int ranks) {
  const double algbw = bytes / us * 1e-3;
  return fmt::format(
      "{:12.0f} {:10.0f} float sum -1 {:8.2f} {:.2f} {:.2f} 0 {:8.2f} {:.2f} {:.2f} 0\n", bytes,
      bytes / 4, us, algbw, algbw * 2 * (ranks - 1) / ranks, us, algbw,
      algbw * 2 * (ranks - 1) / ranks);
}

std::string ranks_on(int ranks, int on_a_host) {
  std::string text = "# nThread 1 nGpus 1 minBytes 8 maxBytes 134217728\n# Using devices\n";
  for (int rank = 0; rank < ranks; ++rank)
    text += fmt::format("#  Rank {:2} Group  0 Pid {} on node{} device {:2} [0x07] NVIDIA H100\n",
                        rank, 100 + rank, rank / on_a_host, rank % on_a_host);
  return text;
}

double seconds(const Cluster& cluster, double bytes, int devices) {
  return cluster.seconds(Collective::kAllReduce, bytes, devices);
}

TEST(FromTable, NcclTestsOnOneNode) {
  const std::string rows = kHeading + row(1 << 20, 45, 8) + row(1 << 27, 1105, 8);
  for (const std::string& heading :
       {std::string("# nThread 1 nGpus 8 minBytes 8\n"), ranks_on(8, 8), std::string(),
        std::string(
            "# nThread 1 nGpus 1\n#  Rank  0 Group 0 Pid 1 on a device 0 [0x1a] Some GPU\n")}) {
    ASSERT_TRUE(is_collective_table(heading + rows));
    const Cluster cluster = parse_cluster(heading + rows, "some/our nccl.txt");
    EXPECT_EQ(cluster.devices_per_node, 8) << heading;
    EXPECT_NEAR(seconds(cluster, 1 << 20, 8), 45e-6, 1e-12);
    EXPECT_NEAR(seconds(cluster, 1 << 27, 8), 1105e-6, 1e-12);
    EXPECT_FALSE(cluster.network);
    EXPECT_EQ(cluster.name, "our-nccl");
  }
  EXPECT_EQ(parse_cluster(ranks_on(8, 8) + rows, "n").device, "NVIDIA H100");
}

TEST(FromTable, SeveralTablesAndThePrefixOfALauncher) {
  std::string text;
  for (const int ranks : {2, 4})
    text +=
        ranks_on(ranks, 8) + kHeading + row(1024, 10.0 * ranks, ranks) + row(1 << 30, 9000, ranks);
  for (const char* const prefix : {"", "0: ", "[1,0]<stdout>:", " 0: "}) {
    std::string prefixed = prefix;
    for (const char c : text) {
      prefixed += c;
      if (c == '\n') prefixed += prefix;
    }
    const Cluster cluster = parse_cluster(prefixed, "n");
    EXPECT_EQ(cluster.devices_per_node, 4) << prefix;
    EXPECT_NEAR(seconds(cluster, 1024, 2), 20e-6, 1e-12);
    EXPECT_NEAR(seconds(cluster, 1024, 4), 40e-6, 1e-12);
  }
}

TEST(FromTable, SeveralHostsGiveTheNetwork) {
  const std::string text =
      ranks_on(16, 8) + kHeading + row(1024, 60, 16) + row(1 << 30, 50'000, 16);
  const Cluster cluster = parse_cluster(text, "n");
  EXPECT_EQ(cluster.devices_per_node, 8);
  ASSERT_TRUE(cluster.network);
  EXPECT_NEAR(seconds(cluster, 1 << 30, 16), 0.05, 0.002);
}

TEST(FromTable, OtherCollectivesAndEmptyTablesAreRefused) {
  std::string gather = "# nThread 1 nGpus 8\n" + std::string(kHeading);
  gather += "1024 256 float none -1 10.0 100.00 87.50 0 10.0 100.00 87.50 0\n";
  EXPECT_THROW(parse_cluster(gather, "n"), InputError);
  EXPECT_THROW(parse_cluster("# Collective test starting: broadcast_perf\n# nThread 1 nGpus 2\n" +
                                 std::string(kHeading) + row(1024, 10, 2),
                             "n"),
               InputError);
  EXPECT_THROW(parse_cluster(kHeading, "n"), InputError);
  EXPECT_FALSE(is_collective_table("name = \"ours\"\n"));
}

TEST(FromTable, NcclTestsJson) {
  const std::string text = R"({"version": 2, "args": ["./build/all_reduce_perf", "-g", "1"],
    "config": {"nthreads": 1, "ngpus": 1, "devices": [
      {"rank": 0, "hostname": "a", "device": 0, "device_info": "NVIDIA A100"},
      {"rank": 1, "hostname": "a", "device": 1, "device_info": "NVIDIA A100"}]},
    "results": [
      {"size": 1024, "out_of_place": {"time": 20.5, "alg_bw": 0.05, "bus_bw": 0.05},
       "in_place": {"time": 21.0, "alg_bw": 0.05, "bus_bw": 0.05}},
      {"size": 1048576, "out_of_place": null,
       "in_place": {"time": 40.0, "alg_bw": 26.2, "bus_bw": 26.2}}]})";
  const Cluster cluster = parse_cluster(text, "n.json");
  EXPECT_EQ(cluster.device, "NVIDIA A100");
  EXPECT_EQ(cluster.devices_per_node, 2);
  EXPECT_NEAR(seconds(cluster, 1024, 2), 20.5e-6, 1e-12);
  EXPECT_NEAR(seconds(cluster, 1 << 20, 2), 40e-6, 1e-12);
}

TEST(FromTable, OsuNeedsTheNumberOfRanks) {
  const std::string text =
      "# OSU MPI-CUDA Allreduce Latency Test v7.1\n# Datatype: MPI_FLOAT.\n"
      "# Size       Avg Latency(us)   Min Latency(us)\n4  3.10  3.0\n1048576  90.5  80\n";
  EXPECT_THROW(parse_cluster(text, "n"), InputError);
  const Cluster cluster = parse_cluster(table_toml(text, "n", 4), "n");
  EXPECT_EQ(cluster.devices_per_node, 4);
  EXPECT_EQ(cluster.device, "GPU");
  EXPECT_NEAR(seconds(cluster, 1 << 20, 4), 90.5e-6, 1e-12);
  EXPECT_THROW(table_toml("# OSU MPI Bcast Latency Test v7.1\n4 1\n", "n", 4), InputError);
}

}  // namespace
}  // namespace howmany::reports
