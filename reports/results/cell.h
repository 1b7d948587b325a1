// SPDX-License-Identifier: Apache-2.0
// Reads a measured cell of `howmany backend` ("all_reduce/gloo" with parameters) or a row of
// `howmany transfer` ("host_to_device" with parameters). Values only; not tied to any thread.
#pragma once

#include <cmath>
#include <cstdlib>
#include <string>

#include "core/base/schema/metrics.h"
#include "core/base/schema/parameters.h"
#include "reports/results/curve.h"
#include "reports/results/record.h"

namespace howmany::reports {

inline bool is_timed(const Measurement& m) {
  const double seconds = value_of(m, metric::kMedianS);
  return m.suite == "backend" && !has_failed(m) && std::isfinite(seconds) && seconds > 0;
}

inline bool is_timed_transfer(const Measurement& m, const std::string& kind) {
  const double seconds = value_of(m, metric::kMedianS);
  return m.suite == "transfer" && m.name == kind && !has_failed(m) && std::isfinite(seconds) &&
         seconds > 0;
}

inline std::string backend_of(const Measurement& m) { return m.name.substr(m.name.find('/') + 1); }
inline std::string op_of(const Measurement& m) { return m.name.substr(0, m.name.find('/')); }

inline double number_of(const Measurement& m, const char* key) {
  return std::strtod(parameter_of(m, key).c_str(), nullptr);
}

// Returns a count, limited to 0 to 1e9.
inline int count_of(const Measurement& m, const char* key) {
  const double number = number_of(m, key);
  return number > 0 ? static_cast<int>(std::fmin(number, 1e9)) : 0;
}

inline CurvePoint point_of(const Measurement& m) {
  const Metric& seconds = m.metrics.at(metric::kMedianS);
  CurvePoint point{number_of(m, parameter::kBytes), seconds.value};
  if (seconds.low && seconds.high) point.interval = Interval{*seconds.low, *seconds.high};
  point.one_round = seconds.basis != "rounds";
  return point;
}

// Returns JSON null if the value is not finite.
inline nlohmann::ordered_json finite_or_null(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
}

}  // namespace howmany::reports
