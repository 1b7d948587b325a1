#include "reports/backend_reference.h"

#include <cctype>
#include <cmath>
#include <string_view>

namespace howmany {
namespace {

constexpr double kTolerance = 0.1, kNearestSize = 2;
constexpr double kKiB = 1024, kMiB = 1024 * kKiB, kGiB = 1024 * kMiB;
// A copy of this size takes fifty times as long as it takes to start: only bandwidth is left.
constexpr double kLargeCopy = 32 * kMiB;
constexpr std::string_view kToDevice = "host_to_device", kToHost = "device_to_host",
                           kBetween = "device_to_device";
constexpr const char* kRead = "2026-09";
constexpr const char* kGearshifft = "github.com/mpicbg-scicomp/gearshifft/pull/82";
constexpr const char* kMlEngineering = "github.com/stas00/ml-engineering, network/README";
constexpr const char* kSuperbench = "github.com/microsoft/superbench-results v0.4.0";

std::vector<Reference> collect() {
  std::vector<Reference> all;
  const auto add = [&](const char* system, const char* gpu, int gpus, std::string_view op,
                       double bytes, double gb_per_s, const char* source) {
    all.push_back({system, gpu, gpus, std::string(op), bytes, gb_per_s * 1e9, source, kRead});
  };
  constexpr const char* kA100 = "8x A100 SXM (NVLink 3)";
  add(kA100, "A100", 8, "all_reduce", 32 * kKiB, 1.31, kMlEngineering);
  add(kA100, "A100", 8, "all_reduce", kMiB, 18.0, kMlEngineering);
  add(kA100, "A100", 8, "all_reduce", 16 * kMiB, 106, kMlEngineering);
  add(kA100, "A100", 8, "all_reduce", 128 * kMiB, 177, kMlEngineering);
  add(kA100, "A100", 8, "all_reduce", kGiB, 229, kMlEngineering);
  add(kA100, "A100", 8, "all_reduce", 16 * kGiB, 235, kMlEngineering);
  constexpr const char* kH100 = "H100 80GB HBM3";  // SXM: others have no NVSwitch
  add("8x H100 SXM, ring", kH100, 8, "all_reduce", 2 * kGiB, 367, "NVIDIA/nccl#1455, #1442");
  constexpr const char* kH200 = "8x H200, NVLS";
  add(kH200, "H200", 8, "all_reduce", 32 * kKiB, 1.44, kMlEngineering);
  add(kH200, "H200", 8, "all_reduce", kMiB, 39.9, kMlEngineering);
  add(kH200, "H200", 8, "all_reduce", 16 * kMiB, 219.9, kMlEngineering);
  add(kH200, "H200", 8, "all_reduce", 128 * kMiB, 401.9, kMlEngineering);
  add(kH200, "H200", 8, "all_reduce", kGiB, 463.6, kMlEngineering);
  add(kH200, "H200", 8, "all_reduce", 16 * kGiB, 482.3, kMlEngineering);
  add("4x H200", "H200", 4, "all_reduce", 8 * kGiB, 363.3, kMlEngineering);
  add("4x B200", "B200", 4, "all_reduce", 8 * kGiB, 673.2, kMlEngineering);
  add("8x B200", "B200", 8, "all_reduce", 8 * kGiB, 838.0, kMlEngineering);
  add("P100, PCIe 3 x16", "P100", 1, kToDevice, kLargeCopy, 12.15, kGearshifft);
  add("P100, PCIe 3 x16", "P100", 1, kToHost, kLargeCopy, 12.89, kGearshifft);
  add("A100, PCIe 4 x16", "A100", 1, kToDevice, kLargeCopy, 25.9, kSuperbench);
  add("A100, PCIe 4 x16", "A100", 1, kToHost, kLargeCopy, 26.0, kSuperbench);
  add("H200, PCIe 5 x16", "H200", 1, kToDevice, kLargeCopy, 55.43, kMlEngineering);
  add("H200, PCIe 5 x16", "H200", 1, kToHost, kLargeCopy, 55.06, kMlEngineering);
  add("two H100 SXM, NVLink 4", kH100, 2, kBetween, kLargeCopy, 380, "NVIDIA/nccl#1264");
  all.back().read = "2026-11";
  add("two H200, NVLink 4", "H200", 2, kBetween, kLargeCopy, 396.4, kMlEngineering);
  return all;
}

// Of the sizes, by which the nearest is chosen.
double apart(const Reference& r, double bytes) {
  const bool copy = r.op == kToDevice || r.op == kToHost || r.op == kBetween;
  return copy && bytes >= r.bytes ? 0 : std::abs(std::log(r.bytes / bytes));
}

// Whether the name has it as a word: "NVIDIA A100-SXM4-80GB" is an "A100".
bool is_called(const std::string& name, const std::string& gpu) {
  const auto in_word = [&](size_t at) {
    return at < name.size() && std::isalnum(static_cast<unsigned char>(name[at])) != 0;
  };
  for (size_t at = name.find(gpu); at != std::string::npos; at = name.find(gpu, at + 1))
    if ((at == 0 || !in_word(at - 1)) && !in_word(at + gpu.size())) return true;
  return false;
}

}  // namespace

const std::vector<Reference>& references() {
  static const std::vector<Reference> all = collect();
  return all;
}

std::optional<ReferenceVerdict> judge(const std::string& gpu, int gpus, const std::string& op,
                                      double bytes, double bytes_per_s) {
  const Reference* nearest = nullptr;
  for (const Reference& r : references()) {
    if (!is_called(gpu, r.gpu) || r.gpus != gpus || r.op != op) continue;
    if (apart(r, bytes) > std::log(kNearestSize) + 1e-9) continue;
    if (!nearest || apart(r, bytes) < apart(*nearest, bytes)) nearest = &r;
  }
  if (!nearest || !std::isfinite(bytes_per_s)) return {};
  const double ratio = bytes_per_s / nearest->bytes_per_s;
  const char* words = ratio < 1 - kTolerance ? "low" : ratio > 1 + kTolerance ? "high" : "normal";
  return ReferenceVerdict{nearest, ratio, words};
}

}  // namespace howmany
