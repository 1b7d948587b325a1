// SPDX-License-Identifier: Apache-2.0
// Writes sentences about the copies of GPUs.
#include "reports/transfer/words.h"

#include <fmt/format.h>

#include <set>
#include <string_view>

#include "core/base/schema/metrics.h"
#include "core/base/schema/parameters.h"
#include "core/base/schema/reasons.h"
#include "core/base/text/bytes.h"
#include "core/base/text/format.h"
#include "reports/results/cell.h"
#include "reports/transfer/gpu.h"

namespace howmany::reports {
namespace {

constexpr double kWorthPinning = 1.1, kUnlike = 1.1;
constexpr const char *kTo = "host_to_device", *kFrom = "device_to_host";
constexpr const char* kPinned = "pinned memory";

std::string times(double ratio) {
  return ratio < 1.95 ? format_ratio(ratio) + "x" : format_times(ratio);
}

// Returns "55.2 GB/s, 3.1x pageable memory's 17.8 GB/s (256 MiB)".
std::string rates(const RateComparison& c, const std::string& before,
                  const std::string& after = "") {
  return fmt::format("{}, {} {}{}{} ({})", format_rate(c.bytes_per_s),
                     c.noise ? "within noise of" : times(c.ratio()), before, format_rate(c.than),
                     after, format_bytes(c.bytes));
}

std::optional<RateComparison> pinned_against_pageable(const GpuCopies& copies, const char* kind,
                                                      const std::string& gpu) {
  const auto sync = [&](const char* memory) -> const Curve& {
    return copies.curve(kind, {{"device", gpu}, {"memory", memory}, {"how", "sync"}});
  };
  return compare_rates(sync("pinned"), sync("pageable"));
}

class Notes {
 public:
  explicit Notes(const GpuCopies& copies) : copies_(copies) {}

  // Describes the first GPU in full, and only the differences of the others.
  std::vector<std::string> write() {
    if (!copies_.devices.empty()) {
      gpu_ = copies_.devices[0];
      add_from();
      for (const char* kind : {kTo, kFrom}) add_latency(kind);
      add_small();
      for (const auto& [name, memory] : {std::pair{"Registered memory", "registered"},
                                         {"Write-combined memory", "write_combined"}})
        add_directions(name, "pinned memory's ", "", {{"memory", memory}, {"how", "async"}});
      add_directions("Both ways at once", "the ", " alone",
                     {{"memory", "pinned"}, {"how", "async"}, {"beside", "other_way"}});
      add_unlike();
    }
    add_within();
    add_pairs();
    add_verdicts();
    return std::move(notes_);
  }

 private:
  using Having = std::map<std::string, std::string>;

  const Curve& curve(const std::string& kind, Having having) const {
    having.insert({"device", gpu_});
    return copies_.curve(kind, having);
  }
  static bool is_to(std::string_view kind) { return kind == kTo; }
  static std::string way(std::string_view kind, const std::string& gpu) {
    return (is_to(kind) ? "to " : "from ") + gpu;
  }

  void add_from() {
    if (const auto c = pinned_against_pageable(copies_, kFrom, gpu_))
      notes_.push_back(
          fmt::format("From {} pinned memory takes {}.", gpu_, rates(*c, "pageable memory's ")));
  }

  void add_latency(const char* kind) {
    const Curve& pinned = curve(kind, {{"memory", "pinned"}, {"how", "sync"}});
    if (pinned.empty()) return;
    if (const auto below = latency_below(pinned))
      notes_.push_back(fmt::format(
          "Below {} a copy from {} to {}, one at a time, is latency ({} to start); "
          "above it is bandwidth.",
          format_bytes(*below), is_to(kind) ? kPinned : gpu_, is_to(kind) ? gpu_ : kPinned,
          format_seconds(fit_alpha_beta(pinned).latency)));
  }

  // Compares the smallest copies with one copy of as many bytes.
  void add_small() {
    const Measurement* smallest = nullptr;
    for (const Measurement& m : copies_.small)
      if (parameter_of(m, parameter::kDevice) == gpu_ &&
          (!smallest || number_of(m, parameter::kBytes) < number_of(*smallest, parameter::kBytes)))
        smallest = &m;
    const Curve& whole = curve(kTo, {{"memory", "pinned"}, {"how", "sync"}});
    if (!smallest || whole.empty()) return;
    const double bytes =
        number_of(*smallest, parameter::kBytes) * number_of(*smallest, parameter::kCount);
    const double many = value_of(*smallest, metric::kMedianS), alone = seconds_at(whole, bytes);
    notes_.push_back(fmt::format("{} copies of {} to {} take {}, {} as long as one of {} ({}{}).",
                                 parameter_of(*smallest, parameter::kCount),
                                 format_bytes(number_of(*smallest, parameter::kBytes)), gpu_,
                                 format_seconds(many), times(many / alone), format_bytes(bytes),
                                 format_seconds(alone), doubt_at(whole, bytes)));
  }

  // Returns "" if the size is within the measured ones.
  static std::string doubt_at(const Curve& curve, double bytes) {
    if (is_within(curve, bytes)) return "";
    const auto error = fit_alpha_beta(curve).error;
    return error ? fmt::format(", fitted with an error of {}", format_percent(*error)) : ", fitted";
  }

  // Compares with plain pinned memory in each direction.
  void add_directions(const std::string& what, const std::string& before, const std::string& after,
                      const Having& having) {
    std::string text;
    for (const char* kind : {kTo, kFrom}) {
      const Curve& plain = curve(kind, {{"memory", "pinned"}, {"how", "async"}});
      if (const auto c = compare_rates(curve(kind, having), plain))
        text += fmt::format("{} {} {}", text.empty() ? ":" : ";", way(kind, gpu_),
                            rates(*c, before, after));
    }
    if (!text.empty()) notes_.push_back(what + text + ".");
  }

  void add_unlike() {
    for (const std::string& other : copies_.devices)
      for (const char* kind : {kTo, kFrom}) {
        const Having pinned = {{"memory", "pinned"}, {"how", "async"}};
        Having of_other = pinned;
        of_other["device"] = other;
        const auto c = compare_rates(copies_.curve(kind, of_other), curve(kind, pinned));
        if (c && is_unlike(*c))
          notes_.push_back(fmt::format("Pinned copies {} move {}.", way(kind, other),
                                       rates(*c, "the ", " " + way(kind, gpu_))));
      }
  }
  static bool is_unlike(const RateComparison& c) {
    return !c.noise && (c.ratio() > kUnlike || c.ratio() < 1 / kUnlike);
  }

  void add_within() {
    for (const CopyLine& line : copies_.lines)
      if (line.path() == "same")
        notes_.push_back(fmt::format("Copies within {} move {}.",
                                     line.parameters.at(parameter::kFrom), rate_of(line.curve)));
  }

  // Describes the first pair, and the pairs that differ from it.
  void add_pairs() {
    const CopyLine* first = nullptr;
    for (const CopyLine& line : copies_.lines) {
      if (line.path() != "peer" && !is_only_staged(line)) continue;
      if (!first) {
        first = &line;
        notes_.push_back(pair_in_words(line));
      } else if (line.path() != first->path()) {
        notes_.push_back(pair_in_words(line));
      } else if (const auto c = compare_rates(line.curve, first->curve); c && is_unlike(*c)) {
        notes_.push_back(fmt::format("Copies {} move {}.", pair_of(line),
                                     rates(*c, "the ", " " + pair_of(*first))));
      }
    }
  }
  static std::string pair_of(const CopyLine& line) {
    return fmt::format("from {} to {}", line.parameters.at(parameter::kFrom),
                       line.parameters.at(parameter::kTo));
  }
  static std::string rate_of(const Curve& curve) {
    const CurvePoint& p = curve.back();
    return fmt::format("{} ({})", format_rate(p.bytes / p.seconds), format_bytes(p.bytes));
  }
  const Curve& same_pair(const CopyLine& line, const char* path) const {
    Having having = line.parameters;
    having["path"] = path;
    return copies_.curve(line.kind, having);
  }
  bool is_only_staged(const CopyLine& line) const {
    return line.path() == "staged" && same_pair(line, "peer").empty();
  }
  std::string pair_in_words(const CopyLine& line) const {
    if (line.path() == "staged")
      return fmt::format("Copies {} go through the host: {}.", pair_of(line), rate_of(line.curve));
    const auto c = compare_rates(line.curve, same_pair(line, "staged"));
    return fmt::format("Peer copies {} move {}.", pair_of(line),
                       c ? rates(*c, "the ", " through the host") : rate_of(line.curve));
  }

  // One sentence for each kind and outcome, so that equal GPUs do not repeat it.
  void add_verdicts() {
    std::set<std::pair<std::string, std::string>> told;
    for (const CopyVerdict& v : copies_.verdicts) {
      if (!told.insert({v.op, v.against.words}).second) continue;
      const Reference& r = *v.against.reference;
      notes_.push_back(fmt::format("{} from {} to {}: {} is {}, {:.2f} of {} ({}; {}, {}).",
                                   format_bytes(v.bytes), v.from, v.to, format_rate(v.bytes_per_s),
                                   v.against.words, v.against.ratio, format_rate(r.bytes_per_s),
                                   r.system, r.source, r.read));
    }
  }

  const GpuCopies& copies_;
  std::string gpu_;
  std::vector<std::string> notes_;
};

}  // namespace

std::optional<PinningAnswer> pinning_in_words(const GpuCopies& copies) {
  for (const std::string& gpu : copies.devices) {
    const auto c = pinned_against_pageable(copies, kTo, gpu);
    if (!c) continue;
    const bool faster = c->ratio() >= kWorthPinning;
    const char* whether = !faster    ? "Pinning does not pay here"
                          : c->noise ? "It is not certain that pinning pays"
                                     : "Pin what goes to a GPU";
    return PinningAnswer{faster ? reason::kPinnedFaster : reason::kPinnedNotFaster,
                         fmt::format("{}: to {} pinned memory moves {}.", whether, gpu,
                                     rates(*c, "pageable memory's ")),
                         !c->noise};
  }
  return {};
}

std::vector<std::string> notes_of(const GpuCopies& copies) { return Notes(copies).write(); }

}  // namespace howmany::reports
