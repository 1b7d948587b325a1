// SPDX-License-Identifier: Apache-2.0
// Evaluates copies to, from and between GPUs, from the rows of transfer_bench. Compares only
// measurements of the same size. Claims no difference if two intervals overlap, and compares
// nothing if one is missing. Values only; not tied to any thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "reports/comm/reference.h"
#include "reports/results/curve.h"
#include "reports/results/record.h"

namespace howmany::reports {

// Copies that differ only in size.
struct CopyLine {
  std::string kind;                               // "host_to_device"
  std::map<std::string, std::string> parameters;  // without "bytes"
  Curve curve;

  // Returns "same", "peer" or "staged" for copies between devices with known ends, else "".
  std::string path() const;
};

// A copy compared with published figures for the same hardware.
struct CopyVerdict {
  std::string op, from, to;  // "host_to_device", "pinned memory", "cuda:0"
  double bytes = 0, bytes_per_s = 0;
  ReferenceVerdict against;
};

struct GpuCopies {
  std::vector<std::string> devices;  // "cuda:0", ... with copies to or from the host
  std::vector<CopyLine> lines;
  std::vector<Measurement> small;     // measurements of many small copies
  std::vector<CopyVerdict> verdicts;  // empty if no reference covers this GPU

  // Returns the curve of the line of that kind with these parameters, or an empty curve. Returns
  // copies measured concurrently with others only if `having` contains "beside".
  const Curve& curve(const std::string& kind,
                     const std::map<std::string, std::string>& having) const;
};

// `gpu` is the driver's name of the GPU, or empty.
GpuCopies gpu_copies_of(const std::vector<Measurement>& measurements, const std::string& gpu);
bool is_of_gpu(const Measurement& m);  // true if one of its devices is a GPU

// Compares two curves at the largest common size with intervals in both. Returns nullopt if there
// is no such size.
struct RateComparison {
  double bytes = 0, bytes_per_s = 0, than = 0;
  bool noise = false;  // the intervals of their medians overlap
  double ratio() const { return bytes_per_s / than; }
};
std::optional<RateComparison> compare_rates(const Curve& curve, const Curve& than);
// True if both have an interval. Otherwise their difference may be noise.
bool can_compare(const CurvePoint& a, const CurvePoint& b);
bool within_noise(const CurvePoint& a, const CurvePoint& b);  // true if no difference is known

nlohmann::ordered_json devices_json(const GpuCopies& copies);
nlohmann::ordered_json verdicts_json(const GpuCopies& copies);

}  // namespace howmany::reports
