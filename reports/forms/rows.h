// SPDX-License-Identifier: Apache-2.0
// The rows of a scaling study for a form: one per number of nodes or devices, relative to the
// smallest. Values only; not tied to any thread.
//
// Nodes. If a request ran over nodes, a row is a number of nodes, with the most devices that were
//   measured there. Else it is a number of devices of one node.
// Configuration. A row is the fastest valid configuration of its count, and `single` on one device.
// Efficiency. By rate: that of the measurement over that of the baseline. By total time:
//   p_b T_b / (p_N T_N), with T of a whole run. If the runs trained different numbers of samples, T
//   is per sample.
// Intervals. 95 %: those of the row and of the baseline, added as if independent. 90 % if
// predicted.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "reports/forms/form.h"
#include "reports/predict/forecast.h"
#include "reports/results/record.h"

namespace howmany::reports {

struct Figure {
  double value = std::nan("");  // NaN: not measured
  std::optional<double> low = {}, high = {};
};

struct ScalingRow {
  int nodes = 1, devices = 1;
  Evidence evidence = Evidence::kMeasured;
  std::string configuration;  // "ddp over nccl"
  Figure samples_per_s, speedup, efficiency, wall_s, start_s, step_s;
  double gpu_utilisation = std::nan(""), memory_bytes = std::nan(""), mfu = std::nan("");
};

struct ScalingRows {
  std::vector<ScalingRow> measured, beyond;  // by nodes and devices; `measured` is not empty
  bool over_nodes = false;
  bool by_total_time = false, per_sample = false;  // see Efficiency above
  bool of_batches = false;                         // Forecast::of_batches
  std::vector<std::string> sentences;              // of the forecast
  int devices_per_node = 1;                        // of the rows in `beyond`
};

// Returns the rows of `model`. Throws InputError if none is valid.
ScalingRows scaling_rows(const Summary& summary, const std::string& model, bool total_time);

int count_of(const ScalingRows& rows, const ScalingRow& row);  // nodes or devices

}  // namespace howmany::reports
