// SPDX-License-Identifier: Apache-2.0
#include "reports/cli/quick_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sstream>

namespace howmany::reports {
namespace {

constexpr const char* kModel = "mlp:sizes=64-64-10";
constexpr double kSameLoss = 0.01;  // relative

bool is_usable(const std::vector<Part>& parts, const std::string& name) {
  return std::ranges::any_of(parts,
                             [&](const Part& part) { return part.name == name && part.usable; });
}

QuickCheck training(const std::string& what, const std::vector<std::string>& how) {
  QuickCheck check{"howmany-train", what, {"--model", kModel}, true};
  check.arguments.insert(check.arguments.end(), how.begin(), how.end());
  return check;
}

std::vector<QuickCheck> training_checks(const Machine& machine) {
  const std::string two = "cpu:0,cpu:1";
  std::vector<QuickCheck> checks = {training("one device trains", {"--devices", "cpu:0"})};
  const auto add_ddp = [&](const std::string& backend, const std::string& devices) {
    if (is_usable(machine.comms, backend))
      checks.push_back(training(
          fmt::format("two ranks over {} train as one device", backend),
          {"--mode", "ddp", "--backend", backend, "--devices", devices, "--oversubscribe"}));
  };
  add_ddp("local", two);
  add_ddp("gloo", two);
  if (!machine.cuda.empty())
    checks.push_back(training("a GPU trains as a CPU", {"--devices", machine.cuda[0]}));
  if (machine.cuda.size() > 1) add_ddp("nccl", machine.cuda[0] + "," + machine.cuda[1]);
  return checks;
}

}  // namespace

std::vector<QuickCheck> quick_checks(const Machine& machine) {
  std::vector<QuickCheck> checks = training_checks(machine);
  for (const std::string backend : {"local", "gloo"})
    if (is_usable(machine.comms, backend))
      checks.push_back({"backend_bench",
                        fmt::format("collectives over {} carry the right data", backend),
                        {"--backend", backend, "--devices", "cpu:0,cpu:1", "--oversubscribe",
                         "--max-bytes", "65536", "--size-factor", "16", "--time-budget", "1"}});
  const std::string device = machine.cuda.empty() ? "cpu:0" : machine.cuda[0];
  checks.push_back({"transfer_bench",
                    fmt::format("copies to and from {} are exact", device),
                    {"--devices", device, "--max-bytes", "65536", "--time-budget", "1"}});
  for (const std::string type : {"threads", "processes"})
    checks.push_back({"loader_bench",
                      fmt::format("loader workers as {} decode images", type),
                      {"--worker-type", type, "--workers", "2", "--images", "16", "--width", "64",
                       "--height", "64", "--image-size", "32", "--case-budget", "0.1"}});
  checks.push_back({"howmany-memory", "a model's memory is estimated", {"--model", "resnet18"}});
  for (const std::string bench : {"core_bench", "script_bench"})
    checks.push_back({bench, bench + " starts", {"--help"}});
  checks.push_back({"speedup_bench",
                    "training steps are timed",
                    {"--model", kModel, "--mode", "single,ddp", "--devices", "cpu:0,cpu:1",
                     "--oversubscribe", "--case-budget", "0.1"}});
  return checks;
}

std::vector<double> read_losses(const std::string& printed) {
  constexpr std::string_view kBefore = ", Loss: ";
  std::vector<double> losses;
  std::istringstream lines(printed);
  for (std::string line; std::getline(lines, line);) {
    const size_t at = line.find(kBefore);
    if (line.starts_with("Epoch ") && at != line.npos)
      losses.push_back(std::strtod(line.c_str() + at + kBefore.size(), nullptr));
  }
  return losses;
}

bool are_same_losses(const std::vector<double>& a, const std::vector<double>& b) {
  const auto same = [](double x, double y) {
    return std::isfinite(x) && std::abs(x - y) <= kSameLoss * std::abs(x);
  };
  return !a.empty() && std::ranges::equal(a, b, same);
}

}  // namespace howmany::reports
