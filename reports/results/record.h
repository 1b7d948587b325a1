// The summary every command writes and reads: schema howmany.summary/1, described in
// reports/README.md and checked by reports/summary.schema.json. Files are untrusted: read_summary
// throws InputError naming the file and the place, never crashes. Values only; not tied to any
// thread.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"

namespace howmany::reports {

struct Metric {
  double value = 0;                 // NaN: not defined here; null in the file
  std::string unit;                 // "s", "1/s", "ratio", "bytes"
  std::optional<double> low, high;  // 95 % confidence interval
  int64_t n = 0;                    // what the value and its interval stand on, see `basis`
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

struct Summary {
  nlohmann::json context = nlohmann::json::object();
  nlohmann::json answer =
      nlohmann::json::object();  // member per question: {recommended, because, table}
  std::vector<Measurement> measurements;
};

nlohmann::ordered_json to_json(const Summary& summary);
Summary summary_from_json(const nlohmann::json& json, const std::string& source);
Summary read_summary(const std::string& path);

// Tidy: one row per measurement and metric, RFC 4180; numbers read back as the same double.
std::string to_csv(const Summary& summary);

}  // namespace howmany::reports
