// SPDX-License-Identifier: Apache-2.0
// Ranks on several nodes need equal machines and programs, and a network interface over
// which the nodes reach the first one. Use from one thread.
#pragma once

#include <string>
#include <vector>

#include "reports/nodes/nodes.h"

namespace howmany::reports {

// Returns the facts of this node as one line of JSON: {"node", "machine": machine_fingerprint(),
// "interface", "python", "torch"}. "interface" leads to the host `head`; it is empty if the name of
// this node is that of an address there. `python` is a path; if it is empty, the last two are
// absent.
std::string facts_of_this_node(const std::string& head, const std::string& python);

// Asks the first `count` nodes at once. Returns the variables that ranks there need in addition:
// GLOO_SOCKET_IFNAME if the name of a node is a loopback address. Throws InputError that names the
// nodes if one does not answer within a minute, or its machine, programs, Python or torch are
// others than the first one's.
std::vector<std::string> check_nodes(const Nodes& nodes, int count, const std::string& python);

}  // namespace howmany::reports
