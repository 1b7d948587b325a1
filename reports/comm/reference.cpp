// SPDX-License-Identifier: Apache-2.0
#include "reports/comm/reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include <embedded/reports/data/bandwidths.json.h>
#include "core/base/text/bytes.h"

namespace howmany::reports {
namespace {

constexpr double kTolerance = 0.1;
constexpr double kSameSize = 0.01;  // of a size: buffers are rounded to whole elements per rank
constexpr std::string_view kToDevice = "host_to_device", kToHost = "device_to_host",
                           kBetween = "device_to_device";
// Published figures. Names are whole names of GPUs, or for copies of host memory words of them. A
// P100-PCIE is not the SXM2 variant, which may have NVLink to the host.
std::vector<Reference> collect() {
  std::vector<Reference> all;
  for (const auto& row : nlohmann::json::parse(embedded::kBandwidths))
    all.push_back({row["system"], row["names"], row["gpus"], row["op"], row["bytes"],
                   row["gb_per_s"].get<double>() * 1e9, row["source"], row["read"]});
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
