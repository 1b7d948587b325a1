// SPDX-License-Identifier: Apache-2.0
// Synthetic cells of `howmany backend` for the tests. Values only; not tied to any thread.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "reports/results/record.h"

namespace howmany::reports {

constexpr double kKiB = 1024, kMiB = 1024 * kKiB;

inline Measurement cell(const std::string& op, const std::string& backend, double bytes,
                        double seconds, const std::string& model = "") {
  Measurement m{"backend", op + "/" + backend, {}, {}, {}};
  m.parameters = {{"dtype", "f32"}, {"devices", "2"}, {"bytes", fmt::format("{:.0f}", bytes)}};
  if (!model.empty()) m.parameters["model"] = model;
  m.metrics["median_s"] = {seconds, "s", 0.99 * seconds, 1.01 * seconds, 20, "iterations"};
  m.metrics["busbw_bytes_per_s"] = {bytes / seconds, "bytes/s", {}, {}, 20, "iterations"};
  return m;
}

// An all_reduce over several rounds, with an interval of the time +- `half` of it.
inline Measurement of_rounds(const std::string& backend, double bytes, double seconds, double half,
                             const std::string& model = "") {
  Measurement m = cell("all_reduce", backend, bytes, seconds, model);
  m.metrics["median_s"] = {seconds, "s", (1 - half) * seconds, (1 + half) * seconds, 5, "rounds"};
  return m;
}

inline Measurement skipped(Measurement m, const std::string& why = "no time left") {
  m.metrics.clear();
  m.flags = {"skipped: " + why};
  return m;
}

inline std::vector<Measurement> two_backends() {
  std::vector<Measurement> all;
  for (double bytes = 4; bytes <= 64 * kMiB; bytes *= 4) {
    all.push_back(cell("all_reduce", "gloo", bytes, 10e-6 + 2e-9 * bytes));
    all.push_back(cell("all_reduce", "local", bytes, 30e-6 + 0.5e-9 * bytes));
  }
  return all;
}

}  // namespace howmany::reports
