// SPDX-License-Identifier: Apache-2.0
// The rehearsal in the results of `howmany gpus --up-to`: its efficiency and the log of its steps.
// Values only; not tied to any thread.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "reports/predict/forecast.h"
#include "reports/results/record.h"

namespace howmany::reports {

// The suite of the measurement of a rehearsal.
constexpr const char* kRehearsalSuite = "rehearsal";

// True if one rank of the mode, or the stages of one replica, can be rehearsed.
bool is_rehearsable(const std::string& mode);
// True if the work of a rank is the same on any number of devices, so that one rehearsal can be
// replayed for other numbers. Else each number is rehearsed: tensor without ways=n divides layers
// over all devices, and the stages of pipeline and hybrid wait for each other.
bool is_replayable(const std::string& mode);

// Returns the rehearsal of a summary. `lines` are those of its samples; the ones with steps are of
// the rehearsal. Throws InputError if there is none, or if one that would be replayed failed or
// logged nothing.
Rehearsed rehearsed_of(const Summary& summary, const std::vector<nlohmann::json>& lines,
                       const Cluster& cluster);

// Returns the steps of the rehearsal of a run in `folder`. Throws InputError if there are none.
StepLog rehearsed_log(const std::string& folder, const Summary& summary);

// Returns the rehearsal of a run in `folder`, replayed on `cluster`, which may be another one.
// Returns nullopt if the run has none. Throws InputError as rehearsed_of() does, or if the run was
// on another kind of device than those of the cluster.
std::optional<Rehearsed> rehearsed_in(const std::string& folder, const Summary& summary,
                                      const Cluster& cluster);

}  // namespace howmany::reports
