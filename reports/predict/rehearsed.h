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

// True if the work of a rank is the same on any number of devices, so that one rehearsal can be
// replayed for other numbers. tensor without ways=n divides layers over all devices.
bool is_replayable(const std::string& mode);

// Throws InputError if it was measured on CPU cores and the cluster is of GPUs, or the other way
// round.
void refuse_other_devices(const Measurement& m, const Cluster& cluster);

// Returns the rehearsal of a summary. `lines` are those of its samples; the ones with steps are of
// the rehearsal. Throws InputError if there is none, or if one that would be replayed failed or
// logged nothing.
ClusterSteps rehearsed_of(const Summary& summary, const std::vector<nlohmann::json>& lines,
                          const Cluster& cluster);

// Returns the rehearsal of a run in `folder`, replayed on `cluster`, which may be another one.
// Returns nullopt if the run has none. Throws InputError as rehearsed_of() does, or if the run was
// on another kind of device than those of the cluster.
std::optional<ClusterSteps> rehearsed_in(const std::string& folder, const Summary& summary,
                                         const Cluster& cluster);

}  // namespace howmany::reports
