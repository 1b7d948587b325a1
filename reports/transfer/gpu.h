// Copies to, from and between GPUs: from the rows of transfer_bench to sentences and JSON. What is
// compared was measured at the same size; where two intervals overlap no difference is claimed, and
// where one is missing nothing is compared.
// Values only; not tied to any thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "reports/comm/curve.h"
#include "reports/comm/reference.h"
#include "reports/results/record.h"

namespace howmany::reports {

// Copies that differ in nothing but their size.
struct CopyLine {
  std::string kind;                               // "host_to_device"
  std::map<std::string, std::string> parameters;  // "bytes" is not among them
  Curve curve;

  // Between devices, which "from" and "to" name: "same", "peer", "staged"; empty otherwise.
  std::string path() const;
};

// Against what others published for the same hardware.
struct CopyVerdict {
  std::string op, from, to;  // "host_to_device", "pinned memory", "cuda:0"
  double bytes = 0, bytes_per_s = 0;
  ReferenceVerdict against;
};

struct GpuCopies {
  std::vector<std::string> devices;  // "cuda:0", ... with copies to or from the host
  std::vector<CopyLine> lines;
  std::vector<Measurement> small;     // many small copies each
  std::vector<CopyVerdict> verdicts;  // empty where no reference speaks of this GPU

  // The line of that kind that has these parameters, beside other copies only when asked for.
  // Empty when there is none.
  const Curve& curve(const std::string& kind,
                     const std::map<std::string, std::string>& having) const;
};

// `gpu`: as the driver names it; empty without one.
GpuCopies gpu_copies_of(const std::vector<Measurement>& measurements, const std::string& gpu);
bool is_of_gpu(const Measurement& m);  // one of its devices is

// Two curves at the largest size where both have an interval; nothing where there is none.
struct RateComparison {
  double bytes = 0, bytes_per_s = 0, than = 0;
  bool noise = false;  // the intervals of their medians overlap
  double ratio() const { return bytes_per_s / than; }
};
std::optional<RateComparison> compare_rates(const Curve& curve, const Curve& than);
// Whether both have an interval: without, what tells them apart is not known.
bool can_compare(const CurvePoint& a, const CurvePoint& b);
bool within_noise(const CurvePoint& a, const CurvePoint& b);  // nothing tells them apart

nlohmann::ordered_json devices_json(const GpuCopies& copies);
nlohmann::ordered_json verdicts_json(const GpuCopies& copies);

}  // namespace howmany::reports
