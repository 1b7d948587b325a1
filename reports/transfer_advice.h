// From measured copies to sentences: from which size on a copy is bandwidth rather than latency,
// what more threads and larger batches bring, and what one training step spends on moving data.
// Values only; not tied to any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/backend_curve.h"
#include "reports/record.h"

namespace howmany {

struct CopyCurve {
  int threads = 1;
  Curve curve;
  AlphaBeta fit;
  double best_bytes_per_s = 0, best_at = 0;  // the fastest size: in a cache, usually
  double large_bytes_per_s = 0;              // at the largest size
};

struct StepTime {
  std::string model;
  int64_t batch = 0;
  double batch_in = 0, loss_out = 0, whole = 0;  // seconds
  double share() const { return (batch_in + loss_out) / whole; }
};

struct TransferAdvice {
  std::optional<int> recommended;  // threads for large copies
  std::string because;             // one sentence
  std::vector<std::string> notes;
  std::vector<CopyCurve> copies;  // by threads
  std::optional<double>
      latency_below;  // bytes: smaller copies take half their time or more to start
  std::vector<StepTime> steps;
  double loopback_bytes_per_s = 0;
};

TransferAdvice advise_transfer(const std::vector<Measurement>& measurements);
nlohmann::ordered_json to_json(const TransferAdvice& advice,
                               const std::vector<Measurement>& measurements);
std::string render_transfer(const TransferAdvice& advice,
                            const std::vector<Measurement>& measurements, bool color);

}  // namespace howmany
