// SPDX-License-Identifier: Apache-2.0
// A step as an MLCommons Chakra execution trace, for ASTRA-sim and other simulators. Values only;
// not tied to any thread.
//
// Nodes. The program's own work between two calls or waits is a node, which follows the one before.
//   A collective follows the work before its call, and the collective before it. Work after a wait
//   also follows the collective that the program waited for. So a simulator finds the same overlap
//   as replay.h. Durations are those of the log, in whole microseconds.
// Sizes. comm_size is the input of one rank, as in Chakra's converter of PyTorch traces.
// Source. schema/protobuf/et_def.proto and src/feeder of github.com/mlcommons/chakra@21585d8.
#pragma once

#include <string>

#include "reports/predict/replay.h"

namespace howmany::reports {

// Returns the contents of a file of one rank.
std::string chakra_trace(const LoggedStep& step);

// Writes PREFIX.0.et, PREFIX.1.et, ...: the step of median length, for each rank of the log.
// Throws InputError if there is no step, if a collective is of a part of the ranks, or if a file
// cannot be written.
void write_chakra(const StepLog& log, const std::string& prefix);

}  // namespace howmany::reports
