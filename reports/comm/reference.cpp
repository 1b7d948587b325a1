#include "reports/comm/reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <string_view>
#include <utility>

#include "core/base/text/bytes.h"

namespace howmany::reports {
namespace {

constexpr double kTolerance = 0.1;
constexpr double kSameSize = 0.01;  // of a size: buffers are rounded to whole elements per rank
constexpr double kKiB = 1024, kMiB = 1024 * kKiB, kGiB = 1024 * kMiB;
// A copy of this size takes fifty times its latency, so its rate is the bandwidth.
constexpr double kLargeCopy = 32 * kMiB;
constexpr std::string_view kToDevice = "host_to_device", kToHost = "device_to_host",
                           kBetween = "device_to_device";
constexpr const char* kRead = "2026-09";
constexpr const char* kGearshifft = "github.com/mpicbg-scicomp/gearshifft/pull/82";
constexpr const char* kMlEngineering = "github.com/stas00/ml-engineering, network/README";
constexpr const char* kSuperbench = "github.com/microsoft/superbench-results v0.4.0";

std::vector<Reference> collect() {
  std::vector<Reference> all;
  using Names = std::vector<std::string>;
  const auto add = [&](const char* system, const Names& names, int gpus, std::string_view op,
                       double bytes, double gb_per_s, const char* source) {
    all.push_back({system, names, gpus, std::string(op), bytes, gb_per_s * 1e9, source, kRead});
  };
  const Names a100_sxm = {"A100-SXM4-40GB", "A100-SXM4-80GB"}, h100_sxm = {"H100 80GB HBM3"};
  const Names h200_sxm = {"H200"}, b200 = {"B200"};
  const Names p100 = {"P100-PCIE"};  // the SXM2 variant may have NVLink to the host
  constexpr const char* kA100 = "8x A100 SXM (NVLink 3)";
  add(kA100, a100_sxm, 8, "all_reduce", 32 * kKiB, 1.31, kMlEngineering);
  add(kA100, a100_sxm, 8, "all_reduce", kMiB, 18.0, kMlEngineering);
  add(kA100, a100_sxm, 8, "all_reduce", 16 * kMiB, 106, kMlEngineering);
  add(kA100, a100_sxm, 8, "all_reduce", 128 * kMiB, 177, kMlEngineering);
  add(kA100, a100_sxm, 8, "all_reduce", kGiB, 229, kMlEngineering);
  add(kA100, a100_sxm, 8, "all_reduce", 16 * kGiB, 235, kMlEngineering);
  add("8x H100 SXM, ring", h100_sxm, 8, "all_reduce", 2 * kGiB, 367, "NVIDIA/nccl#1455, #1442");
  constexpr const char* kH200 = "8x H200, NVLS";
  add(kH200, h200_sxm, 8, "all_reduce", 32 * kKiB, 1.44, kMlEngineering);
  add(kH200, h200_sxm, 8, "all_reduce", kMiB, 39.9, kMlEngineering);
  add(kH200, h200_sxm, 8, "all_reduce", 16 * kMiB, 219.9, kMlEngineering);
  add(kH200, h200_sxm, 8, "all_reduce", 128 * kMiB, 401.9, kMlEngineering);
  add(kH200, h200_sxm, 8, "all_reduce", kGiB, 463.6, kMlEngineering);
  add(kH200, h200_sxm, 8, "all_reduce", 16 * kGiB, 482.3, kMlEngineering);
  add("4x H200", h200_sxm, 4, "all_reduce", 8 * kGiB, 363.3, kMlEngineering);
  add("4x B200", b200, 4, "all_reduce", 8 * kGiB, 673.2, kMlEngineering);
  add("8x B200", b200, 8, "all_reduce", 8 * kGiB, 838.0, kMlEngineering);
  add("P100, PCIe 3 x16", p100, 1, kToDevice, kLargeCopy, 12.15, kGearshifft);
  add("P100, PCIe 3 x16", p100, 1, kToHost, kLargeCopy, 12.89, kGearshifft);
  add("A100, PCIe 4 x16", {"A100"}, 1, kToDevice, kLargeCopy, 25.9, kSuperbench);
  add("A100, PCIe 4 x16", {"A100"}, 1, kToHost, kLargeCopy, 26.0, kSuperbench);
  add("H200, PCIe 5 x16", {"H200"}, 1, kToDevice, kLargeCopy, 55.43, kMlEngineering);
  add("H200, PCIe 5 x16", {"H200"}, 1, kToHost, kLargeCopy, 55.06, kMlEngineering);
  add("two H100 SXM, NVLink 4", h100_sxm, 2, kBetween, kLargeCopy, 380, "NVIDIA/nccl#1264");
  all.back().read = "2026-11";
  add("two H200, NVLink 4", h200_sxm, 2, kBetween, kLargeCopy, 396.4, kMlEngineering);
  return all;
}

bool is_of_host(const Reference& r) { return r.op == kToDevice || r.op == kToHost; }

bool is_at(const Reference& r, double bytes) {
  const bool copy = is_of_host(r) || r.op == kBetween;
  return (copy && bytes >= r.bytes) || std::abs(bytes / r.bytes - 1) <= kSameSize;
}

// True if the name contains it as a word: "NVIDIA A100-SXM4-80GB" is an "A100".
bool has_word(const std::string& name, const std::string& gpu) {
  const auto in_word = [&](size_t at) {
    return at < name.size() && std::isalnum(static_cast<unsigned char>(name[at])) != 0;
  };
  for (size_t at = name.find(gpu); at != std::string::npos; at = name.find(gpu, at + 1))
    if ((at == 0 || !in_word(at - 1)) && !in_word(at + gpu.size())) return true;
  return false;
}

// True if it is the whole name, except for the maker.
bool is_called(const std::string& name, const std::string& gpu) {
  return name == gpu || name.ends_with(" " + gpu);
}

bool speaks_of(const Reference& r, const std::string& gpu, int gpus, const std::string& op) {
  return r.gpus == gpus && r.op == op && std::ranges::any_of(r.names, [&](const std::string& name) {
           return is_of_host(r) ? has_word(gpu, name) : is_called(gpu, name);
         });
}

ReferenceVerdict verdict(const Reference& r, const std::string& source, double expected,
                         double bytes_per_s) {
  const double ratio = bytes_per_s / expected;
  const char* words = ratio < 1 - kTolerance ? "low" : ratio > 1 + kTolerance ? "high" : "normal";
  return {&r, expected, source, ratio, words};
}

std::string source_of(const Reference& r) { return r.source + ", " + r.read; }

std::string source_of(const Reference& below, const Reference& above) {
  return fmt::format("interpolated between {} and {} of {}", format_bytes(below.bytes),
                     format_bytes(above.bytes), source_of(below));
}

// Interpolates the rate on logarithmic axes, which is a lower bound. Returns nullopt if the upper
// bound, from linear interpolation of times, differs by more than the tolerance.
std::optional<double> between(const Reference& below, const Reference& above, double bytes) {
  const double share = std::log(bytes / below.bytes) / std::log(above.bytes / below.bytes);
  const double least = below.bytes_per_s * std::pow(above.bytes_per_s / below.bytes_per_s, share);
  const double seconds = std::lerp(below.bytes / below.bytes_per_s, above.bytes / above.bytes_per_s,
                                   (bytes - below.bytes) / (above.bytes - below.bytes));
  const bool told = std::abs(bytes / seconds / least - 1) <= kTolerance;
  return told ? std::optional(least) : std::nullopt;
}

// Returns the nearest known sizes on both sides; nullptr if there is none.
std::pair<const Reference*, const Reference*> neighbours(const std::vector<const Reference*>& known,
                                                         double bytes) {
  const Reference *below = nullptr, *above = nullptr;
  for (const Reference* r : known) {
    if (r->bytes < bytes && (!below || r->bytes > below->bytes)) below = r;
    if (r->bytes > bytes && (!above || r->bytes < above->bytes)) above = r;
  }
  return {below, above};
}

}  // namespace

const std::vector<Reference>& references() {
  static const std::vector<Reference> all = collect();
  return all;
}

std::optional<ReferenceVerdict> judge(const std::string& gpu, int gpus, const std::string& op,
                                      double bytes, double bytes_per_s) {
  if (!std::isfinite(bytes_per_s)) return {};
  std::vector<const Reference*> known;
  for (const Reference& r : references()) {
    if (!speaks_of(r, gpu, gpus, op)) continue;
    if (is_at(r, bytes)) return verdict(r, source_of(r), r.bytes_per_s, bytes_per_s);
    known.push_back(&r);
  }
  const auto [below, above] = neighbours(known, bytes);
  if (!below || !above || below->system != above->system) return {};
  const auto expected = between(*below, *above, bytes);
  if (!expected) return {};
  return verdict(*below, source_of(*below, *above), *expected, bytes_per_s);
}

}  // namespace howmany::reports
