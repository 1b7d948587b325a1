// SPDX-License-Identifier: Apache-2.0
// Copies to, from and between GPUs, from the rows of transfer_bench. Compares only measurements of
// the same size. Claims no difference if two intervals overlap, and compares nothing if one is
// missing. Values only; not tied to any thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "reports/results/curve.h"
#include "reports/results/record.h"

namespace howmany::reports {

inline constexpr const char *kToDevice = "host_to_device", *kFromDevice = "device_to_host";

// Copies that differ only in size.
struct CopyLine {
  std::string kind;                               // kToDevice
  std::map<std::string, std::string> parameters;  // without "bytes"
  Curve curve;
};

struct GpuCopies {
  std::vector<std::string> devices;  // "cuda:0", ... with copies to or from the host
  std::vector<CopyLine> lines;

  // Returns the curve of the line of that kind with these parameters, or an empty curve. Returns
  // copies measured concurrently with others only if `having` contains "beside".
  const Curve& curve(const std::string& kind,
                     const std::map<std::string, std::string>& having) const;
};

GpuCopies gpu_copies_of(const std::vector<Measurement>& measurements);
bool is_of_gpu(const Measurement& m);  // true if one of its devices is a GPU

// The rates of one direction in bytes/s, each at its largest size. NaN if not measured.
struct DirectionRates {
  double pageable, pinned;                                     // single copies
  double pinned_async, registered, write_combined, both_ways;  // of a sequence
  double latency_s, latency_below;  // of single pinned copies; `latency_below` in bytes
};
DirectionRates rates_of(const GpuCopies& copies, const std::string& device,
                        const std::string& kind);

// Compares two curves at the largest common size with intervals in both. Returns nullopt if there
// is no such size.
struct RateComparison {
  double bytes = 0, bytes_per_s = 0, than = 0;
  bool noise = false;  // the intervals of their medians overlap
  double ratio() const { return bytes_per_s / than; }
};
std::optional<RateComparison> compare_rates(const Curve& curve, const Curve& than);
// True if the intervals overlap or one is missing.
bool within_noise(const CurvePoint& a, const CurvePoint& b);

}  // namespace howmany::reports
