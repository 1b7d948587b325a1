// SPDX-License-Identifier: Apache-2.0
// Small valid documents that several tests use.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>

#include "reports/gpus/plan.h"
#include "reports/results/record.h"

namespace howmany::reports {

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

// `single`, and ddp on 1, 2 and 4 devices.
inline Summary example_curve() {
  Summary summary;
  summary.answer["gpus"] = {{"min_efficiency", 0.8}, {"samples_to_train", 1e6}};
  for (const int n : {0, 1, 2, 4}) {
    const int devices = n == 0 ? 1 : n;
    const double efficiency = 1 - 0.05 * (devices - 1);
    Measurement m{"speedup", n == 0 ? "single/mlp" : "ddp/mlp", {}, {}, {}};
    m.parameters = {{"model", "mlp"},
                    {"mode", n == 0 ? "single" : "ddp"},
                    {"backend", n == 0 ? "local" : "gloo"},
                    {"devices", std::to_string(devices)},
                    {"device_list", "cuda:0,cuda:1"},
                    {"scaling", "weak"},
                    {"batch_per_device", "64"}};
    m.metrics["median_s"] = {0.1, "s", 0.09, 0.11, 3, "rounds"};
    m.metrics["samples_per_s"] = {640.0 * devices, "1/s", {}, {}, 3, "rounds"};
    m.metrics["speedup"] = {efficiency * devices, "ratio", {}, {}, 3, "rounds"};
    m.metrics["efficiency"] = {efficiency,        "ratio", efficiency - 0.01,
                               efficiency + 0.01, 3,       "rounds"};
    summary.measurements.push_back(m);
  }
  return summary;
}

// Returns the largest number of consecutive digits.
inline int most_digits(const std::string& text) {
  int most = 0, here = 0;
  for (const char c : text) {
    here = c >= '0' && c <= '9' ? here + 1 : 0;
    most = std::max(most, here);
  }
  return most;
}

inline Request example_request() {
  Request request;
  request.workloads = {{"mlp", 64}, {"resnet18:image=64", 16}};
  request.modes = {"data_parallel", "ddp"};
  request.one_process = {"single", "data_parallel"};
  request.backends = {"gloo", "local"};
  request.devices = {"cpu:0", "cpu:1"};
  request.counts = {1, 2};
  return request;
}

inline const char* kSamplesText =
    R"({"name": "a", "seconds": [0.1, 2.5e-1], "converged": true, "flags": ["f"], "world": 2}
{"name": "b", "seconds": []}
)";

inline const char* kDevicesText = R"({
  "cpu_devices": {"usable_cores": 8, "default_count": 4, "cores_per_device": 2},
  "backends": {"comms": [{"name": "gloo", "usable": true, "why": "built in"}],
               "kernels": [{"name": "cuda", "usable": true, "why": "built in"}]},
  "models": [{"name": "mlp"}], "modes": [{"name": "ddp"}], "gpus": [{"index": 0}, {"index": 1}]
})";

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

}  // namespace howmany::reports
