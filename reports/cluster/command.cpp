// SPDX-License-Identifier: Apache-2.0
#include "reports/cluster/command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <memory>

#include "core/base/cli/number_check.h"
#include "core/base/cli/option.h"
#include "core/base/cli/output_options.h"
#include "core/base/error.h"
#include "core/base/schema/exit_codes.h"
#include "core/base/schema/flags.h"
#include "core/base/text/files.h"
#include "core/base/text/format.h"
#include "core/base/text/json.h"
#include "core/base/text/table.h"
#include "reports/cluster/cluster.h"
#include "reports/cluster/from_backend.h"
#include "reports/cluster/from_table.h"

namespace howmany::reports {
namespace {

constexpr double kMiB = 1 << 20;
constexpr double kSizes[] = {1 * kMiB, 25 * kMiB, 100 * kMiB, 1024 * kMiB};
constexpr int kMaxNodes = 16;

struct ClusterArguments {
  std::string what = "list";
  std::string run, backend;  // measured here, or by another benchmark
  int devices_per_node = 0;
  bool json = false;
};

std::string between_nodes(const Cluster& c) {
  if (!c.network) return "none";
  return fmt::format("{:g} x {:g} Gbit/s", c.network->links, c.network->gbit_per_s);
}

// Whole nodes beyond the first, in powers of two.
std::vector<int> numbers(const Cluster& c) {
  std::vector<int> all;
  for (int n = 2; n < c.devices_per_node; n *= 2) all.push_back(n);
  for (int nodes = 1; nodes <= kMaxNodes; nodes *= 2)
    if (const int n = nodes * c.devices_per_node; n > 1 && c.refusal(n).empty()) all.push_back(n);
  return all;
}

nlohmann::ordered_json to_json(const Cluster& c) {
  nlohmann::ordered_json times = nlohmann::ordered_json::array();
  for (const int n : numbers(c)) times.push_back(cost_table(c, n));
  return {{"name", c.name},
          {"device", c.device},
          {"devices_per_node", c.devices_per_node},
          {"memory_gb", c.memory_gb ? nlohmann::json(*c.memory_gb) : nullptr},
          {"cores_per_node", c.cores_per_node ? nlohmann::json(*c.cores_per_node) : nullptr},
          {"network_bytes_per_s", c.network ? nlohmann::json(c.network->bytes_per_s()) : nullptr},
          {"source", c.source},
          {"seconds", times}};
}

std::string list_text(const std::vector<Cluster>& all, bool color) {
  using Align = Table::Align;
  Table table({{"name", Align::kLeft},
               {"device", Align::kLeft},
               {"in a node"},
               {"between nodes"},
               {"all-reduce of 25 MiB in a node"},
               {"on 2 nodes"}});
  const auto time = [](const Cluster& c, int n) {
    return c.refusal(n).empty() ? format_seconds(c.seconds(Collective::kAllReduce, kSizes[1], n))
                                : "-";
  };
  for (const Cluster& c : all)
    table.add({c.name, c.device, std::to_string(c.devices_per_node), between_nodes(c),
               time(c, c.devices_per_node), time(c, 2 * c.devices_per_node)});
  return table.text(color) +
         "\nhowmany cluster NAME shows the times and their sources. Write your own cluster as a "
         "TOML "
         "file.\n";
}

std::string show_text(const Cluster& c, bool color) {
  std::string text =
      wrapped(fmt::format("{}: {} x {} in a node, between nodes {}. Source: {}.", c.name,
                          c.devices_per_node, c.device, between_nodes(c), c.source),
              kTextWidth, 2);
  Table table({{"GPUs"}, {"1 MiB"}, {"25 MiB"}, {"100 MiB"}, {"1 GiB"}, {"bus bandwidth, 1 GiB"}});
  for (const int n : numbers(c)) {
    std::vector<std::string> cells = {std::to_string(n)};
    for (const double bytes : kSizes)
      cells.push_back(format_seconds(c.seconds(Collective::kAllReduce, bytes, n)));
    const double seconds = c.seconds(Collective::kAllReduce, kSizes[3], n);
    cells.push_back(fmt::format("{:.3g} GB/s", 2.0 * (n - 1) / n * kSizes[3] / seconds * 1e-9));
    table.add(cells);
  }
  return text + "\n\nTime of an all-reduce, as published or computed from the file:\n" +
         table.text(color);
}

int write_measured(const ClusterArguments& a) {
  const bool folder = std::filesystem::is_directory(a.run);
  if (!folder) {
    const std::string text = read_text(a.run);
    if (is_collective_table(text)) {
      fmt::print("{}", table_toml(text, a.run, a.devices_per_node));
      return exit_code::kFine;
    }
  }
  const Summary summary = read_summary(folder ? a.run + "/summary.json" : a.run);
  fmt::print("{}", cluster_toml(summary, a.backend));
  return exit_code::kFine;
}

int run_cluster(const ClusterArguments& a) {
  if (!a.run.empty() && a.json)
    throw InputError(fmt::format("{} writes TOML, not JSON", flag::kFrom.name));
  if (!a.run.empty()) return write_measured(a);
  if (!a.backend.empty() || a.devices_per_node > 0)
    throw InputError(fmt::format("{} and {} need {}", flag::kBackend.name,
                                 flag::kDevicesPerNode.name, flag::kFrom.name));
  const bool color = color_wanted(STDOUT_FILENO);
  if (a.what == "list") {
    const std::vector<Cluster> all = built_in_clusters();
    nlohmann::ordered_json json = nlohmann::ordered_json::array();
    for (const Cluster& c : all) json.push_back(to_json(c));
    fmt::print("{}", a.json ? dump_json(json) : list_text(all, color));
    return exit_code::kFine;
  }
  const Cluster cluster = find_cluster(a.what);
  fmt::print("{}", a.json ? dump_json(to_json(cluster)) : show_text(cluster, color));
  return exit_code::kFine;
}

}  // namespace

void add_cluster_command(CLI::App& sub, int& code) {
  const auto a = std::make_shared<ClusterArguments>();
  sub.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  sub.add_option("what", a->what, "list, or a cluster's name or TOML file")
      ->type_name("list|NAME|FILE");
  add_option(sub, flag::kFrom, a->run, "");
  sub.add_option("--from-backend,--from-nccl-tests", a->run)->group("");  // other spellings
  add_option(sub, flag::kBackend, a->backend, "the recommended one");
  add_option(sub, flag::kDevicesPerNode, a->devices_per_node, "that of the table")
      ->check(whole_between(1, 1024));
  add_json(sub, a->json);
  sub.footer(
      "Nothing is measured. The times are published ones; each cluster names its sources.\n\n"
      "A file for your own cluster:\n"
      "  name = \"ours\"\n"
      "  device = \"A100\"\n"
      "  devices_per_node = 4\n"
      "  source = \"nccl-tests, 2026-11\"\n"
      "  [node]\n"
      "  busbw_gb_per_s = 230\n"
      "  latency_us = 35\n"
      "  [network]\n"
      "  links = 2\n"
      "  gbit_per_s = 200\n"
      "With node_of = \"a100x8\" instead of device, devices_per_node and [node], the nodes are "
      "those "
      "of that cluster.\n\n"
      "Examples:\n"
      "  howmany cluster list\n"
      "  howmany cluster a100x8\n"
      "  howmany cluster ours.toml --json\n"
      "  howmany cluster nccl.txt                     # of all_reduce_perf, as text or JSON\n"
      "  howmany cluster --from nccl.txt > here.toml\n"
      "  howmany cluster --from howmany-out/20260101T120000Z > here.toml   # howmany backend");
  sub.callback([a, &code] { code = run_cluster(*a); });
}

}  // namespace howmany::reports
