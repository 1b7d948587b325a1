// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "benches/common/program.h"
#include "benches/tools/computed.h"
#include "benches/tools/devices_flags.h"
#include "benches/tools/engines.h"
#include "benches/tools/inventory.h"
#include "benches/tools/probes.h"

namespace {

using nlohmann::json;

// A heading that repeats the last one is blank, which groups the lines into blocks.
void line(std::string_view what, const std::string& text) {
  static std::string_view last;
  fmt::print("{:<11}{}\n", what == last ? "" : what, text);
  last = what;
}

std::string plural(int64_t n, std::string_view word) {
  return fmt::format("{} {}{}", n, word, n == 1 ? "" : "s");
}

std::string gigabytes(const json& bytes) {
  return bytes.is_number() ? fmt::format("{:.1f} GB", bytes.get<double>() / 1e9) : "unknown";
}

// Cache sizes are powers of two.
std::string kibibytes(uint64_t bytes) {
  return bytes >= 1 << 20 ? fmt::format("{} MiB", bytes >> 20) : fmt::format("{} KiB", bytes >> 10);
}

void print_answer(const json& cpu) {
  const int count = cpu["default_count"];
  fmt::print("{} by default here: cpu:0{}, {} each\n\n", plural(count, "device"),
             count > 1 ? fmt::format("-{}", count - 1) : "",
             plural(cpu["cores_per_device"], "core"));
}

void print_cores(const json& cpu) {
  line("cores", fmt::format("{} usable", cpu["usable_cores"].get<int>()));
  for (const json& limit : cpu["limits"])
    line("limits",
         fmt::format("{:<5g} {} ({}){}", limit["cpus"].get<double>(),
                     limit["source"].get<std::string>(), limit["detail"].get<std::string>(),
                     limit["decides"].get<bool>() ? "  <- decides" : ""));
}

void print_machine(const json& all) {
  const json& cpu = all["cpu"];
  line("cpu",
       fmt::format("{}, {}, {}, {}, {}", cpu["model"].get<std::string>(),
                   plural(cpu["sockets"], "socket"), plural(cpu["cores"], "core"),
                   plural(cpu["threads"], "thread"), cpu["architecture"].get<std::string>()));
  line("governor",
       cpu["governor"].is_string() ? cpu["governor"].get<std::string>() : "not shown here");
  for (const json& node : all["numa"])
    line("numa", fmt::format("node {}: cores {}, {}", node["node"].get<int>(),
                             node["cpus"].get<std::string>(), gigabytes(node["memory_bytes"])));
  for (const json& cache : all["caches"])
    line("cache", fmt::format("L{} {:<12} {:>8} x {}, each for {}", cache["level"].get<int>(),
                              cache["type"].get<std::string>(),
                              kibibytes(cache["size_bytes"].get<uint64_t>()),
                              cache["count"].get<int>(), plural(cache["shared_by"], "thread")));
}

void print_memory(const json& memory) {
  const std::string limit = memory["limit_bytes"].is_null()
                                ? memory["limit_because"].get<std::string>()
                                : fmt::format("limit {} ({})", gigabytes(memory["limit_bytes"]),
                                              memory["limit_because"].get<std::string>());
  line("memory", fmt::format("{}, {} available, {}", gigabytes(memory["total_bytes"]),
                             gigabytes(memory["available_bytes"]), limit));
  if (memory.contains("shm_bytes"))
    line("/dev/shm", fmt::format("{}, {} free", gigabytes(memory["shm_bytes"]),
                                 gigabytes(memory["shm_free_bytes"])));
}

// Omits facts that the driver does not report.
std::string describe_gpu(const json& gpu) {
  std::string text = fmt::format("{}: {}", gpu["index"].get<int>(), gpu.value("name", "unnamed"));
  if (gpu.contains("memory_bytes")) text += ", " + gigabytes(gpu["memory_bytes"]);
  if (gpu.contains("pcie_width"))
    text +=
        fmt::format(", PCIe {} x{}", gpu.value("pcie_generation", 0), gpu.value("pcie_width", 0));
  if (gpu.contains("pci_bus"))
    text += (gpu.contains("pcie_width") ? " at " : ", at ") + gpu["pci_bus"].get<std::string>();
  if (gpu.contains("target")) text += ", " + gpu["target"].get<std::string>();
  if (gpu.contains("compute_capability"))
    text += ", compute capability " + gpu["compute_capability"].get<std::string>();
  if (gpu.contains("numa_node")) text += fmt::format(", NUMA node {}", gpu["numa_node"].get<int>());
  if (gpu.contains("near_cores")) text += ", near cores " + gpu["near_cores"].get<std::string>();
  if (gpu.contains("uuid")) text += ", " + gpu["uuid"].get<std::string>();
  return text + (gpu.value("mig", false) ? ", MIG on" : "");
}

// Groups the links by kind: "NV18  0-1 0-2 1-2".
void print_links(const json& links) {
  std::map<std::string, std::string> pairs;
  for (const json& link : links)
    pairs[link["link"].get<std::string>()] +=
        fmt::format(" {}-{}", link["from"].get<int>(), link["to"].get<int>());
  for (const auto& [link, between] : pairs) line("gpus", fmt::format("{:<5}{}", link, between));
}

void print_gpus(const json& all) {
  if (all["gpus"].empty()) return line("gpus", "none: " + all["gpus_because"].get<std::string>());
  for (const json& gpu : all["gpus"]) line("gpus", describe_gpu(gpu));
  print_links(all["gpu_links"]);
  if (const int hidden = all["gpus_hidden"]; hidden > 0)
    line("gpus",
         fmt::format("{} more, hidden by {}", hidden, all["gpus_hidden_by"].get<std::string>()));
  line("gpus", "driver " + all["driver"].get<std::string>());
  if (all["gpus"][0].value("vendor", "") == "amd")
    return line("gpus", "for your own scripts; howmany's models need NVIDIA GPUs or CPU cores");
  for (const json& kernels : all["backends"]["kernels"])
    if (kernels["name"] == "cuda" && !kernels["usable"].get<bool>())
      line("gpus", "howmany's models use CPU cores: " + kernels["why"].get<std::string>());
}

void print_parts(std::string_view title, const json& parts) {
  for (const json& part : parts)
    line(title,
         fmt::format("{:<10} {:<8} {}", part["name"].get<std::string>(),
                     part["usable"].get<bool>() ? "usable" : "no", part["why"].get<std::string>()));
}

void print_names(std::string_view title, const json& parts) {
  for (const json& part : parts)
    line(title, fmt::format("{:<14} {}", part["name"].get<std::string>(),
                            part["what"].get<std::string>()));
}

void print_launch(const json& launch) {
  if (launch.contains("why")) return line("launch", launch["why"]);
  if (launch["world"] == 1) return;
  line("launch", fmt::format("rank {} of {}, started by {}", launch["rank"].get<int>(),
                             launch["world"].get<int>(), launch["launcher"].get<std::string>()));
}

void print_engines(const json& all) {
  const int64_t own = std::ssize(all["fallbacks"]);
  fmt::print("{} of cuDNN; howmany's own, slower kernels compute {}\n\n",
             plural(std::ssize(all["operations"]), "engine"),
             own == 0 ? "no convolution and no attention" : plural(own, "operation"));
  line("libraries", all["libraries"]);
  for (const json& one : all["fallbacks"])
    line("own",
         fmt::format("{}: {}", one["operation"].get<std::string>(), one["why"].get<std::string>()));
  for (const json& one : all["operations"])
    line("cuDNN",
         fmt::format("{}: {}: {}", one["model"].get<std::string>(),
                     one["operation"].get<std::string>(), one["engine"].get<std::string>()));
}

void print_text(const json& all) {
  print_answer(all["cpu_devices"]);
  print_launch(all["launch"]);
  print_cores(all["cpu_devices"]);
  print_machine(all);
  print_memory(all["memory"]);
  print_gpus(all);
  print_parts("kernels", all["backends"]["kernels"]);
  print_parts("comm", all["backends"]["comms"]);
  print_names("mode", all["modes"]);
  print_names("model", all["models"]);
  line("ranges", all["ranges"]["why"]);
}

int run(int argc, char** argv) {
  if (argc == 4 && argv[1] == howmany::benches::kProbeRank)
    return howmany::benches::probe_as_rank(argv[2], argv[3]), 0;
  const howmany::benches::DevicesFlags flags = howmany::benches::parse_devices_flags(argc, argv);
  if (!flags.computed.empty())
    return fmt::print("{}\n", howmany::benches::computed_steps(flags.computed).dump()), 0;
  const json all = flags.engines ? howmany::benches::engines_of(flags.models, flags.batch)
                                 : howmany::benches::take_inventory();
  if (flags.json)
    fmt::print("{}\n", all.dump(2, ' ', false, json::error_handler_t::replace));
  else if (flags.engines)
    print_engines(all);
  else
    print_text(all);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return howmany::benches::run_program("howmany devices", [&] { return run(argc, argv); });
}
