// SPDX-License-Identifier: Apache-2.0
// Writes a cluster file from what `howmany backend` measured on this node. Values only; not tied to
// any thread.
#pragma once

#include <string>

#include "reports/results/record.h"

namespace howmany::reports {

// Returns the TOML of a cluster of one node, whose all-reduce takes the measured times: those over
// `backend`, or if that is empty over the one that the summary recommends. Throws InputError if the
// summary holds none.
std::string cluster_toml(const Summary& summary, const std::string& backend);

}  // namespace howmany::reports
