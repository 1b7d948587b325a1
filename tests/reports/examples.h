// Small valid documents that several tests start from.
#pragma once

#include <cmath>

#include "reports/record.h"

namespace howmany {

inline Measurement example_measurement() {
  Measurement m{"speedup", "ddp/mlp", {}, {}, {"not converged"}};
  m.parameters = {{"model", "mlp"}, {"mode", "ddp"}, {"backend", "gloo"}, {"devices", "2"}};
  m.metrics["median_s"] = {0.1 + 0.2, "s", 0.29, 0.31, 3, "rounds"};
  m.metrics["busbw_bytes_per_s"] = {std::nan(""), "B/s", {}, {}, 0, ""};
  return m;
}

inline Summary example_summary() {
  Summary summary;
  summary.context = {{"cpu", "some, \"quoted\" CPU"}, {"cores", 2}};
  summary.answer = {{"gpus", {{"recommended", 2}, {"because", "it pays"}, {"table", {1, 2}}}}};
  summary.measurements = {example_measurement()};
  return summary;
}

inline const char* kBenchText = R"({
  "context": {"date": "2026-01-01T00:00:00+00:00", "num_cpus": 2, "json_schema_version": 1},
  "benchmarks": [
    {"name": "speedup/ddp/mlp/devices:2", "family_index": 0, "run_name": "speedup/ddp/mlp/devices:2",
     "run_type": "iteration", "repetitions": 2, "repetition_index": 0, "threads": 1, "iterations": 10,
     "real_time": 2.5, "cpu_time": 2.5, "time_unit": "ms", "samples_per_s": 100.5, "cv": NaN},
    {"name": "speedup/ddp/mlp/devices:2", "run_type": "iteration", "repetition_index": 1,
     "real_time": 2500, "cpu_time": -Infinity, "time_unit": "us", "label": "NaN \"Infinity\""},
    {"name": "speedup/ddp/mlp/devices:2_mean", "run_type": "aggregate", "aggregate_name": "mean",
     "real_time": 2.5, "time_unit": "ms"},
    {"name": "other_BigO", "run_name": "other", "run_type": "aggregate", "big_o": "N",
     "cpu_coefficient": 1, "real_coefficient": 1},
    {"name": "speedup/ddp/mlp/devices:4", "run_type": "iteration", "error_occurred": true,
     "error_message": "peer gone"}
  ]
})";

}  // namespace howmany
