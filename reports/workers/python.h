// SPDX-License-Identifier: Apache-2.0
// Measures the costs of Python in a PyTorch DataLoader with the user's interpreter: the start of a
// worker by fork, forkserver and spawn, and the transfer of a batch.
//
// Program. Uses only the standard library. If torch is installed, its DataLoader also runs on the
//   files, without workers and with one. The bench then emulates more workers.
// Thread safety. One thread. Children are killed if this process ends.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace howmany::reports {

struct PythonCost {
  std::string version;          // "3.11.7 with torch 2.13.0"; empty: not measured
  std::string why_not;          // reason in that case
  double batch_s = 0;           // an empty batch of two tensors to a worker and back
  double sample_s = 0;          // by one worker, all DataLoader work; 0: not measured
  double alone_s = 0;           // without workers
  int oversubscribed = 0;       // twice the number of cores; 0: not measured
  double oversubscribed_s = 0;  // core seconds per sample with that many workers
  std::string how;              // library that makes the sample, "torchvision"
  double more_s = 0;            // extra seconds per sample compared with the bench
  double more_alone_s = 0;      // and without workers
  double more_oversubscribed_s = 0;
  std::string method;                     // start method of workers, "fork"
  std::map<std::string, double> start_s;  // per worker, by method; includes the import of torch

  bool measured() const { return !version.empty(); }
  double worker_start_s() const;
};

// Never throws for failures of Python: why_not reports them, even after partial results.
//
// - method: start method; empty: Python's default
// - check: the script of check_script(); empty if there are no files
// - cores: the cores that workers share
// - oversubscribed: a number of workers that oversubscribes them; 0: none
PythonCost measure_python(const std::string& python, const std::string& method,
                          const std::string& check, const std::string& folder, double cores,
                          int oversubscribed);

// Parse the output of the two programs. Throw InputError if it is invalid.
PythonCost python_cost_from(const nlohmann::json& probe, const std::string& method);
void add_sample_cost(PythonCost& cost, const nlohmann::json& check, double cores);

nlohmann::ordered_json to_json(const PythonCost& cost);

}  // namespace howmany::reports
