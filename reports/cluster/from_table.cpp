// SPDX-License-Identifier: Apache-2.0
#include "reports/cluster/from_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/base/schema/flags.h"
#include "core/base/text/json.h"
#include "core/base/text/lines.h"
#include "core/base/text/table.h"
#include "reports/cluster/cluster_file.h"
#include "reports/results/plain_json.h"

namespace howmany::reports {
namespace {

constexpr double kShare = 0.94;   // Network::share
constexpr double kAgrees = 0.01;  // of the ratio of busbw to algbw
constexpr int kMaxRanks = 16'384;
constexpr size_t kMaxTableRows = 1000;  // as in cluster_file.cpp

struct Run {
  std::string tool = "nccl-tests", device, program;
  std::set<int> ranks;
  std::set<std::string> hosts;
  int per_process = 1, processes = 0;
  std::map<double, double> us;  // bytes -> microseconds of an all-reduce
  double ratio = 0;             // busbw / algbw of the largest size
  double busbw = 0;             // GB/s, the largest
};

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  while (true) {
    line.remove_prefix(std::min(line.find_first_not_of(" \t\r"), line.size()));
    if (line.empty()) return words;
    const size_t end = std::min(line.find_first_of(" \t\r"), line.size());
    words.emplace_back(line.substr(0, end));
    line.remove_prefix(end);
  }
}

std::optional<double> number_of(const std::string& word) {
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || !std::isfinite(value)) return {};
  return value;
}

// Without what mpirun and srun put before each line: "[1,0]<stdout>:", "0: ".
std::string_view without_rank(std::string_view line) {
  if (line.starts_with('['))
    if (const size_t end = line.find(">:"); end != std::string_view::npos)
      line.remove_prefix(end + 2);
  const size_t digits = std::min(line.find_first_not_of(" 0123456789"), line.size());
  if (digits > 0 && line.substr(digits).starts_with(": ")) line.remove_prefix(digits + 2);
  return line;
}

std::vector<std::string_view> rows_of(std::string_view text) {
  std::vector<std::string_view> rows = lines_of(text);
  std::ranges::transform(rows, rows.begin(), without_rank);
  return rows;
}

void add(Run& run, double bytes, double us, double algbw, double busbw) {
  if (!(bytes >= 1) || !(us > 0) || us > 1e12) return;
  double& best = run.us.try_emplace(bytes, us).first->second;
  best = std::min(best, us);
  if (algbw > 0 && busbw > 0 && bytes == run.us.rbegin()->first) run.ratio = busbw / algbw;
  run.busbw = std::max(run.busbw, busbw);
}

// "#  Rank  0 Group  0 Pid  1234 on  node1 device  0 [0x1a] NVIDIA A100"
void read_rank(Run& run, const std::vector<std::string>& words, std::string_view line) {
  const auto after = [&](const char* name) -> std::string {
    const auto found = std::ranges::find(words, name);
    return found == words.end() || found + 1 == words.end() ? "" : *(found + 1);
  };
  if (const auto rank = number_of(after("Rank")); rank && *rank >= 0 && *rank < kMaxRanks)
    run.ranks.insert(static_cast<int>(*rank));
  if (const std::string host = after("on"); !host.empty()) run.hosts.insert(host);
  if (const size_t close = line.rfind("] "); close != std::string_view::npos)
    run.device = fmt::format("{}", fmt::join(words_of(line.substr(close + 2)), " "));
}

// One run for each heading of a table.
std::vector<Run> read_text_runs(const std::string& text) {
  std::vector<Run> runs;
  Run next;
  size_t time = 0;  // column of the first time
  bool counts = false;
  for (const std::string_view line : rows_of(text)) {
    const std::vector<std::string> words = words_of(line);
    if (words.empty()) continue;
    if (words[0].starts_with('#')) {
      const auto has = [&](const char* word) {
        return std::ranges::find(words, word) != words.end();
      };
      if (has("nThread") && has("nGpus")) {
        Run fresh;
        fresh.tool = next.tool;
        fresh.program = next.program;
        next = fresh;
        const auto value = [&](const char* name) {
          const auto at = std::ranges::find(words, name) + 1;
          return at == words.end() ? 1.0 : number_of(*at).value_or(1);
        };
        next.per_process =
            static_cast<int>(std::clamp(value("nThread") * value("nGpus"), 1.0, 1e4));
      }
      if (line.find("rccl") != std::string_view::npos) next.tool = "rccl-tests";
      if (has("starting:")) next.program = words.back();
      if (has("Rank") && has("device")) read_rank(next, words, line);
      const auto first = std::ranges::find_if(
          words, [](const std::string& word) { return word == "time" || word == "cputime"; });
      if (has("size") && has("busbw") && first != words.end()) {
        time = first - words.begin() - (words[0] == "#" ? 1 : 0);
        runs.push_back(next);
        counts = true;
      }
      continue;
    }
    if (!counts || words.size() < time + 3) continue;
    const auto bytes = number_of(words[0]);
    if (!bytes || !number_of(words[1])) continue;
    for (const size_t at : {time, time + 4}) {  // out of place, else in place
      if (words.size() < at + 3) break;
      const auto us = number_of(words[at]), algbw = number_of(words[at + 1]),
                 busbw = number_of(words[at + 2]);
      if (!us || !algbw || !busbw || !(*us > 0)) continue;
      add(runs.back(), *bytes, *us, *algbw, *busbw);
      break;
    }
  }
  return runs;
}

Run read_json_run(const std::string& text, const std::string& source) {
  Run run;
  const nlohmann::json root = parse_json(text, source);
  const nlohmann::json& config = json_member(root, "config");
  const auto number = [](const nlohmann::json& object, const char* key) {
    const nlohmann::json& value = json_member(object, key);
    return value.is_number() ? value.get<double>() : 0;
  };
  const auto string = [](const nlohmann::json& object, const char* key) {
    const nlohmann::json& value = json_member(object, key);
    return value.is_string() ? value.get<std::string>() : std::string();
  };
  run.per_process =
      static_cast<int>(std::clamp(number(config, "nthreads") * number(config, "ngpus"), 1.0, 1e4));
  const nlohmann::json& args = json_member(root, "args");
  if (args.is_array() && !args.empty() && args[0].is_string())
    run.program = std::filesystem::path(args[0].get<std::string>()).filename();
  const nlohmann::json& of_config = json_member(config, "devices");
  for (const nlohmann::json& one :
       of_config.is_array() ? of_config : json_member(root, "devices")) {
    ++run.processes;  // the file has the first GPU of each process
    if (const std::string host = string(one, "hostname"); !host.empty()) run.hosts.insert(host);
    run.device = string(one, "device_info");
  }
  for (const nlohmann::json& row : json_member(root, "results")) {
    for (const char* const place : {"out_of_place", "in_place"}) {
      const nlohmann::json& body = json_member(row, place);
      const double us = std::max(number(body, "time"), number(body, "cpu_time"));
      if (!(us > 0)) continue;
      add(run, number(row, "size"), us, number(body, "alg_bw"), number(body, "bus_bw"));
      break;
    }
  }
  return run;
}

// "# OSU MPI-CUDA Allreduce Latency Test v7.1", "# Size  Avg Latency(us)", "4  12.3"
Run read_osu_run(const std::string& text, const std::string& source) {
  Run run;
  run.tool = "osu_allreduce";
  run.device = "cpu";
  for (const std::string_view line : rows_of(text)) {
    if (line.find("OSU ") != std::string_view::npos && line.starts_with('#')) {
      if (line.find("Allreduce") == std::string_view::npos)
        throw InputError(fmt::format("{}: \"{}\" is not osu_allreduce", source,
                                     printable(std::string(line.substr(0, 80)))));
      if (line.find("-CUDA") != std::string_view::npos ||
          line.find("-ROCM") != std::string_view::npos)
        run.device = "GPU";
    }
    const std::vector<std::string> words = words_of(line);
    if (words.size() < 2) continue;
    const auto bytes = number_of(words[0]), us = number_of(words[1]);
    if (bytes && us) add(run, *bytes, *us, 0, 0);
  }
  return run;
}

bool is_osu(const std::string& text) { return text.find("# OSU ") != std::string::npos; }
bool is_json(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string::npos && text[first] == '{';
}

// The number of ranks; 0 if it is not known.
int ranks_of(const Run& run, const std::string& source) {
  const auto agrees = [&](int n) {
    return n > 1 && n <= kMaxRanks &&
           (run.ratio == 0 || std::abs(2.0 * (n - 1) / n / run.ratio - 1) < kAgrees);
  };
  if (!run.program.empty() && !run.program.starts_with("all_reduce"))
    throw InputError(fmt::format("{}: the times are of {}: run all_reduce_perf", source,
                                 printable(run.program.substr(0, 60))));
  const auto lines = static_cast<int>(run.ranks.size());
  const int started = std::min(run.processes, kMaxRanks) * std::min(run.per_process, kMaxRanks);
  for (const int n : {started, lines, run.per_process})
    if (agrees(n)) return n;
  if (run.ratio == 0) return 0;
  if (run.ratio >= 1 - kAgrees && run.ratio < 2) {
    const auto n = static_cast<int>(std::lround(2 / (2 - run.ratio)));
    if (agrees(n)) return n;
  }
  throw InputError(
      fmt::format("{}: busbw is {:.3g} times algbw, as no all-reduce has it: run all_reduce_perf",
                  source, run.ratio));
}

std::string points_text(const Run& run) {
  std::vector<std::string> pairs;
  for (const auto& [bytes, us] : run.us)
    if (pairs.size() < kMaxTableRows) pairs.push_back(fmt::format("[{:.0f}, {:.6g}]", bytes, us));
  return fmt::format("[{}]", fmt::join(pairs, ", "));
}

std::string name_from(const std::string& source) {
  std::string name = std::filesystem::path(source).stem();
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '_') c = '-';
  return name.empty() ? "measured" : name.substr(0, 60);
}

}  // namespace

bool is_collective_table(const std::string& text) {
  if (is_osu(text)) return true;
  if (is_json(text))
    return text.find("\"results\"") != std::string::npos &&
           text.find("\"bus_bw\"") != std::string::npos;
  return std::ranges::any_of(rows_of(text), [](std::string_view line) {
    return line.starts_with('#') && line.find("algbw") != std::string_view::npos &&
           line.find("busbw") != std::string_view::npos;
  });
}

std::string table_toml(const std::string& text, const std::string& source, int devices_per_node) {
  std::vector<Run> runs;
  if (is_osu(text)) {
    runs.push_back(read_osu_run(text, source));
  } else if (is_json(text)) {
    runs.push_back(read_json_run(text, source));
  } else {
    runs = read_text_runs(text);
  }
  std::erase_if(runs, [](const Run& run) { return run.us.empty(); });
  if (runs.empty()) throw InputError(fmt::format("{}: no times of an all-reduce", source));

  std::map<int, Run> in_node, across;  // by ranks
  int node = 0;
  for (const Run& run : runs) {
    const int known = ranks_of(run, source);
    const int ranks = known > 0 ? known : devices_per_node;
    if (ranks < 2)
      throw InputError(fmt::format(
          "{}: {} does not print the number of ranks: howmany cluster {} {} {} N > ours.toml",
          source, run.tool, flag::kFrom.name, source, flag::kDevicesPerNode.name));
    const auto hosts = std::max<int>(1, static_cast<int>(run.hosts.size()));
    const int on_a_host =
        devices_per_node > 0 ? std::min(devices_per_node, ranks) : (ranks + hosts - 1) / hosts;
    node = std::max(node, on_a_host);
    (on_a_host < ranks ? across : in_node).insert_or_assign(ranks, run);
  }
  const Run& first = in_node.empty() ? across.begin()->second : in_node.rbegin()->second;
  std::string toml = fmt::format(
      "name = {}\ndevice = {}\ndevices_per_node = {}\nsource = {}\n", toml_text(name_from(source)),
      toml_text(first.device.empty() ? "GPU" : first.device), node,
      toml_text(
          fmt::format("{}, {}", first.tool, std::filesystem::path(source).filename().string())));
  double small_us = first.us.begin()->second;
  if (in_node.contains(node)) {
    toml += "\n[node.all_reduce_us]  # bytes and microseconds, by the number of devices\n";
    for (const auto& [ranks, run] : in_node)
      toml += fmt::format("{} = {}\n", ranks, points_text(run));
  } else if (node > 1) {
    toml += fmt::format(
        "\n[node]  # not measured alone: as fast as the network at least\n"
        "busbw_gb_per_s = {:.6g}\nlatency_us = {:.6g}\n",
        first.busbw, small_us);
  }
  if (across.empty())
    return toml +
           "\n# Between nodes, if there are several:\n# [network]\n# links = 8\n"
           "# gbit_per_s = 400\n";
  const auto& [ranks, run] = *across.rbegin();
  const double hops = 2 * std::ceil(std::log2(static_cast<double>(ranks) / node));
  const double hop_us = std::max((run.us.begin()->second - small_us) / hops, 1.0);
  return toml + fmt::format(
                    "\n[network]  # of {} ranks: the largest busbw over {} of a link\nlinks = 1\n"
                    "gbit_per_s = {:.6g}\nlatency_us = {:.4g}\n",
                    ranks, kShare, run.busbw * 8 / kShare, hop_us);
}

}  // namespace howmany::reports
