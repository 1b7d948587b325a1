// SPDX-License-Identifier: Apache-2.0
#include "reports/predict/op_time.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/base/text/format.h"
#include "reports/predict/op_rates.h"

namespace howmany::reports {
namespace {

constexpr double kPerTera = 1e12, kPerGiga = 1e9;
constexpr size_t kShownOps = 3;

struct Capability {
  std::string_view generation, chip;  // chip: the start of its name; empty: all others
  std::array<int, 2> version;
};
// docs.nvidia.com/cuda/cuda-programming-guide, section 5.1; AMD's are those that PyTorch shows.
constexpr Capability kCapabilities[] = {{"Kepler", "", {3, 7}},
                                        {"Maxwell", "", {5, 2}},
                                        {"Pascal", "P100", {6, 0}},
                                        {"Pascal", "", {6, 1}},
                                        {"Volta", "", {7, 0}},
                                        {"Turing", "", {7, 5}},
                                        {"Turing GeForce", "", {7, 5}},
                                        {"Ampere", "", {8, 0}},
                                        {"Ampere RTX", "", {8, 6}},
                                        {"GeForce", "RTX 30", {8, 6}},
                                        {"GeForce", "RTX 40", {8, 9}},
                                        {"GeForce", "", {12, 0}},
                                        {"Ada", "", {8, 9}},
                                        {"Hopper", "", {9, 0}},
                                        {"Blackwell", "", {10, 0}},
                                        {"Blackwell RTX", "", {12, 0}},
                                        {"CDNA", "MI3", {9, 4}},
                                        {"CDNA", "", {9, 0}}};

std::set<std::string> name_words(std::string_view name) {
  std::set<std::string> words;
  std::string word;
  for (const char c : std::string(name) + ' ') {
    if (c != ' ' && c != '-') {
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (!word.empty()) {
      words.insert(std::exchange(word, ""));
    }
  }
  return words;
}

const ChipPeak& chip_of(const std::string& device) {
  const std::set<std::string> named = name_words(device);
  const ChipPeak* found = nullptr;
  size_t most = 0;
  for (const ChipPeak& one : kChipPeaks) {
    const std::set<std::string> words = name_words(one.name);
    if (words.size() <= most || !std::ranges::includes(named, words)) continue;
    found = &one;
    most = words.size();
  }
  if (found != nullptr) return *found;
  throw InputError(fmt::format(
      "no rates of the operations of one {} are known: run this on one of them", device));
}

const Efficiency& efficiency_of(std::string_view generation) {
  const auto* const own = std::ranges::find(kEfficiencies, generation, &Efficiency::generation);
  if (own != std::end(kEfficiencies)) return *own;
  return *std::ranges::find(kEfficiencies, "any", &Efficiency::generation);
}

bool has_tensor_cores(const ChipPeak& chip) {
  return chip.generation != "Kepler" && chip.generation != "Maxwell" && chip.generation != "Pascal";
}

struct Peak {
  double tflop_per_s = 0;
  bool tensor = false;
};

Peak dtype_peak(const ChipPeak& chip, std::string_view dtype) {
  if (dtype == "f64" && chip.f64 > 0) return {chip.f64};
  if (dtype == "tf32" && chip.tf32 > 0) return {chip.tf32, true};
  if (dtype == "bf16" && chip.bf16 > 0) return {chip.bf16, true};
  if (dtype == "f8" && chip.f8 > 0) return {chip.f8, true};
  if ((dtype == "f16" || dtype == "f8") && chip.f16 > 0) return {chip.f16, has_tensor_cores(chip)};
  return {chip.f32};
}

double share_of_peak(OpWork work, const Efficiency& e, bool tensor) {
  if (work == OpWork::kProduct) return tensor ? e.product_tensor : e.product_plain;
  if (work == OpWork::kConvolution) return tensor ? e.convolution_tensor : e.convolution_plain;
  return tensor ? e.attention_tensor : e.attention_plain;
}

double kernel_seconds(OpWork work) {
  if (work == OpWork::kProduct) return kKernelSeconds.product;
  if (work == OpWork::kConvolution) return kKernelSeconds.convolution;
  if (work == OpWork::kAttention) return kKernelSeconds.attention;
  return kKernelSeconds.memory;
}

double p_sum(double a, double b, double power) {
  const double large = std::max(a, b), small = std::min(a, b);
  if (!(large > 0)) return 0;
  return large * std::pow(1 + std::pow(small / large, power), 1 / power);
}

bool computes(OpWork work) { return work != OpWork::kMemory && work != OpWork::kUnknown; }

double size_seconds(OpWork work) {
  if (work == OpWork::kProduct) return kSizeSeconds.product;
  return work == OpWork::kConvolution ? kSizeSeconds.convolution : 0;
}

double compute_seconds(const CountedOp& op, const Efficiency& e, const Peak& peak) {
  const double full =
      op.flop / (kPerTera * share_of_peak(op.work, e, peak.tensor) * peak.tflop_per_s);
  const double size = size_seconds(op.work);
  return size > 0 ? full * (1 + kSizeLoss * size / (full + size)) : full;
}

double op_seconds(const CountedOp& op, const ChipPeak& chip, bool compiled) {
  const Efficiency& e = efficiency_of(chip.generation);
  const bool fused = compiled && !computes(op.work) && op.phase != OpPhase::kOptimizer;
  const double share = fused ? kCompiled.memory : 1;
  const double memory = share * (op.read + op.written) / (kPerGiga * e.memory * chip.gb_per_s);
  const double kernel = share * kernel_seconds(op.work);
  if (!computes(op.work)) return memory + kernel;
  const Peak peak = dtype_peak(chip, op.dtype);
  const double layout = peak.tensor && op.op.ends_with("_nchw") ? kNchwPasses * memory : 0;
  return p_sum(compute_seconds(op, e, peak), memory, kRooflinePower) + layout + kernel;
}

// Names the operations without a rate that take the longest.
void refuse_unknown(const CountedStep& step, const std::vector<double>& seconds, double share) {
  if (share <= kMaxUnknown) return;
  std::map<std::string, double> by_name;
  for (const int place : step.order) {
    if (place < 0) continue;
    const CountedOp& op = step.kinds[static_cast<size_t>(place)];
    if (op.work == OpWork::kUnknown) by_name[op.op] += seconds[static_cast<size_t>(place)];
  }
  std::vector<std::pair<double, std::string>> longest;
  for (const auto& [name, sum] : by_name) longest.emplace_back(sum, name);
  std::ranges::sort(longest, std::greater<>());
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(longest.size(), kShownOps); ++i)
    names.push_back(longest[i].second);
  throw InputError(
      fmt::format("{} of the time of its step is in operations without a known rate ({})",
                  format_percent(share), fmt::join(names, ", ")));
}

}  // namespace

OpTimes op_times(const CountedStep& step, const std::string& device) {
  if (!step.refused.empty()) throw InputError(step.refused);
  const ChipPeak& chip = chip_of(device);
  std::vector<double> seconds;
  for (const CountedOp& op : step.kinds) seconds.push_back(op_seconds(op, chip, step.compiled));
  OpTimes times{.begin = {0}, .step = {}};
  for (const int place : step.order) {
    times.begin.push_back(times.begin.back());
    if (place < 0) continue;
    const CountedOp& op = step.kinds[static_cast<size_t>(place)];
    const double one = seconds[static_cast<size_t>(place)];
    times.begin.back() += one;
    if (op.work == OpWork::kUnknown) times.unknown += one;
    if (op.phase == OpPhase::kOptimizer) times.optimizer += one;
  }
  times.gpu = times.begin.back();
  times.unknown /= times.gpu;
  refuse_unknown(step, seconds, times.unknown);
  times.host = step.host_ops * kHostOpSeconds * (step.compiled ? kCompiled.host : 1);
  const double all = p_sum(times.gpu, times.host, kOverlapPower);
  for (double& one : times.begin) one *= all / times.gpu;
  const OpInterval& interval = times.host > times.gpu / 2 ? kHostBound
                               : chip.rows > 0            ? kKnownChip
                                                          : kNewChip;
  times.step = {all, all * interval.low, all * interval.high};
  return times;
}

std::array<int, 2> capability_of(const std::string& device) {
  const ChipPeak& chip = chip_of(device);
  for (const Capability& one : kCapabilities)
    if (one.generation == chip.generation && chip.name.starts_with(one.chip)) return one.version;
  throw InputError(fmt::format("the compute capability of {} is not known", device));
}

}  // namespace howmany::reports
