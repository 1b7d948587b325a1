// SPDX-License-Identifier: Apache-2.0
// Evaluates measured copies:
// - the size from which a copy is limited by bandwidth rather than latency
// - the gain of pinned memory and of more threads
// - the time that one training step spends on moving data
// Values only; not tied to any thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/statistics.h"
#include "reports/results/curve.h"
#include "reports/results/record.h"
#include "reports/transfer/gpu.h"

namespace howmany::reports {

struct CopyCurve {
  int threads = 1;
  Curve curve;
  AlphaBeta fit;
  double best_bytes_per_s = 0, best_at = 0;  // the fastest size, usually in a cache
};

struct StepTime {
  std::string model, device;
  int64_t batch = 0;
  std::map<std::string, CurvePoint> parts;  // "batch_in", "batch_in_pinned", "loss_out", "whole"

  double seconds(const std::string& part) const {  // NaN: not measured
    const auto found = parts.find(part);
    return found == parts.end() ? kNaN : found->second.seconds;
  }
};

struct TransferAdvice {
  std::optional<int> recommended;          // threads for large copies
  bool certain = true, disturbed = false;  // disturbed: by other programs, see disturbance.h
  std::string reason;                      // a code of core/base/schema/reasons.h
  std::string because;                     // one sentence
  std::vector<std::string> notes;
  std::vector<CopyCurve> copies;  // by threads
  std::optional<double>
      latency_below;  // bytes; latency is at least half the time of smaller copies
  std::vector<StepTime> steps;
  GpuCopies gpus;
  double loopback_bytes_per_s = 0;
};

TransferAdvice advise_transfer(const std::vector<Measurement>& measurements);
nlohmann::ordered_json to_json(const TransferAdvice& advice,
                               const std::vector<Measurement>& measurements);
}  // namespace howmany::reports
