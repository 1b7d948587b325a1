// SPDX-License-Identifier: Apache-2.0
// The steps of a rehearsal with their collectives, as reports/predict/replay.h reads them. Values
// only; not tied to any thread.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "parallel/comm/simulation.h"

namespace howmany {
class JsonNode;
}

namespace howmany::benches {

// A collective, in the order of the calls.
struct LoggedCollective {
  std::string op;
  double bytes = 0;
  EvenGroup group = {};
  double at = 0;                      // of the call, since the step began
  double seconds = 0;                 // by the cost table
  int64_t backward = -1;              // of DDP: the backward pass that ends after it; else -1
  std::optional<double> waited = {};  // when the program began to wait for it, since the step began
};

// A timed step of a rehearsal, as one rank ran it.
struct LoggedStep {
  double seconds = 0;
  std::vector<LoggedCollective> collectives = {};
};

// The member "steps" of a line of samples.
nlohmann::ordered_json steps_json(const std::vector<LoggedStep>& steps);

// Reads the cost table that reports/cluster/cluster.h writes. cost_table_from() throws InputError
// if it is malformed, read_cost_table() std::invalid_argument.
CostTable cost_table_from(const JsonNode& root);
CostTable read_cost_table(const std::string& path);

}  // namespace howmany::benches
