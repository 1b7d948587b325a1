// SPDX-License-Identifier: Apache-2.0
// The TOML of cluster files (cluster.h). Files are untrusted. Throws InputError with file and line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reports/cluster/cluster.h"

namespace howmany::reports {

// `known`: clusters that the file may name.
Cluster read_cluster_file(std::string_view text, const std::string& source,
                          const std::vector<Cluster>& known);
// A TOML string in quotes, without control characters.
std::string toml_text(const std::string& text);
// Each may name those before it.
std::vector<Cluster> read_cluster_list(std::string_view text, const std::string& source);

}  // namespace howmany::reports
