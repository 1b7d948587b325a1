// SPDX-License-Identifier: Apache-2.0
// The summary that every command writes and reads. reports/README.md describes its schema,
// howmany.summary/1, and reports/summary.schema.json checks it. Files are untrusted: read_summary()
// throws InputError that names the file and the place. Values only; not tied to any thread.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"

namespace howmany::reports {

struct Metric {
  double value = 0;                 // NaN: not defined; null in the file
  std::string unit;                 // "s", "1/s", "ratio", "bytes"
  std::optional<double> low, high;  // 95 % confidence interval
  int64_t n = 0;                    // the number of values behind it, see `basis`
  std::string basis;                // what n counts: "iterations", "rounds"
};

struct Measurement {
  std::string suite;                              // "speedup"
  std::string name;                               // the case: "ddp/mlp"
  std::map<std::string, std::string> parameters;  // devices, batch, backend, scaling, ...
  std::map<std::string, Metric> metrics;
  std::vector<std::string>
      flags;  // "oversubscribed", "not converged", "failed: <why>", "interrupted"
};

// Return "" and NaN if absent.
std::string parameter_of(const Measurement& m, const std::string& key);
double value_of(const Measurement& m, const std::string& metric);
bool has_failed(const Measurement& m);
// Returns why it was skipped, or "".
std::string why_skipped(const Measurement& m);

struct Summary {
  nlohmann::json context = nlohmann::json::object();
  nlohmann::json answer =
      nlohmann::json::object();  // one member per question: {recommended, because, table}
  std::vector<Measurement> measurements;
};

nlohmann::ordered_json to_json(const Summary& summary);
Summary summary_from_json(const nlohmann::json& json, const std::string& source);
Summary read_summary(const std::string& path);

// Returns tidy CSV (RFC 4180): one row per measurement and metric. Numbers read back as the same
// double.
std::string to_csv(const Summary& summary);

}  // namespace howmany::reports
