// SPDX-License-Identifier: Apache-2.0
// The answer of `howmany predict`: measured rates, predicted rates and the number of GPUs to ask
// for. Values only; not tied to any thread.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "reports/predict/ladder.h"
#include "reports/predict/replay.h"
#include "reports/results/record.h"

namespace howmany::reports {

constexpr const char* kGpuNoun = "GPU";

struct ForecastOptions {
  int up_to = 0;  // 0: four times the largest measured number, and at least a node
  int devices_per_node = 8;
  double min_efficiency = 0.8;
  std::optional<double> samples;              // to train
  std::optional<double> finish_within_hours;  // needs `samples`
  std::optional<double> budget_device_hours;  // needs `samples`
  std::optional<double> price;                // of a device-hour, in any currency
};

// kRehearsed: the script ran as one of that many ranks, and its collectives took the times of a
// cluster (replay.h). kPredicted: replayed from that run, computed (model_runs.h), or from
// published curves alone.
enum class Evidence { kMeasured, kRehearsed, kPredicted };

// A number of GPUs. If it was measured, all values of a range are equal.
struct ForecastRow : Predicted {
  Evidence evidence = Evidence::kPredicted;
  std::string mode = {};  // the fastest of several, if these were compared
  bool is_measured() const { return evidence == Evidence::kMeasured; }
};

// Steps on a cluster: those of a rehearsal, from which the loss on other
// numbers of GPUs is replayed, or computed steps of our own models.
struct ClusterSteps {
  Cluster cluster = {};
  StepLog log = {};            // of a rehearsal on log.world devices
  double efficiency = 1;       // there, relative to one device
  double spread = 0;           // of its steps (spread_of)
  bool replayable = true;      // false: the log is of log.world only; what follows is known
  bool computed = false;       // nothing was rehearsed; not replayable
  bool other_cluster = false;  // `cluster` is not the one that was rehearsed
  std::map<int, double> efficiency_by_devices = {};    // relative to one device
  std::map<int, std::string> failure_by_devices = {};  // or why there is none
};

struct Forecast {
  std::string what;             // "train.py"; empty if unknown
  bool strong = false;          // the same batch on any number of devices
  bool of_batches = false;      // the rates are batches of one GPU per second, not samples
  double spread = 0;            // of the steps of a rehearsal; the rows include stragglers
  std::string cluster;          // of rehearsed or computed steps; empty: none
  bool computed = false;        // ClusterSteps::computed
  std::string noun = kGpuNoun;  // of its devices
  std::string basis;            // if nothing was measured (step_forecast.h), what the rows are from
  std::string next;  // then the measurement that would narrow them; empty: any of the user's own
  nlohmann::ordered_json counted = {};  // figures of a counted script (counted_steps.h), or null
  std::vector<RateAt> measured;
  std::vector<ForecastRow> rows;       // by number of GPUs
  std::optional<int> recommended;      // nullopt: no number is sure to meet the options
  std::vector<std::string> sentences;  // the answer first
  ForecastOptions options;
};

// The training that `howmany gpus` measured.
struct Trained {
  std::string what = {};  // the first model
  bool strong = false;
  std::vector<RateAt> rates = {};
  bool of_batches = false;  // MeasuredRates::of_batches
};
// Throws InputError if the summary holds no rate, or if training waits for the loaders of a full
// node. Also, unless `steps` says how these scale, if the measurements are of CPUs or of strong
// scaling.
Trained trained_in(const Summary& summary, const std::optional<ClusterSteps>& steps = {});

// Throws InputError if an option lacks `samples`, or if these cannot be counted.
void check(const ForecastOptions& options, bool of_batches);

// Predicts 2, 4, 8, ... up to `up_to`, beyond the measured numbers, and decides. With
// `steps`, the loss grows from the largest measured number on as in their replay, with stragglers,
// or as computed. Throws
// InputError as predict() does, or if an option lacks `samples`.
Forecast forecast(const Trained& trained, const ForecastOptions& options,
                  const std::optional<ClusterSteps>& steps = {});

// Returns options.up_to or its default. `measured`: the largest measured number.
int up_to(const ForecastOptions& options, int measured);

// Returns 2, 4, 8, ... below `most` and above `measured`, and `most`.
std::vector<int> counts_up_to(int most, int measured);

// Returns the measured rates; if nothing was measured, that predicted for one GPU.
std::vector<RateAt> known_rates(const Forecast& forecast);

std::string render(const Forecast& forecast, bool color);

}  // namespace howmany::reports
