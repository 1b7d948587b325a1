// SPDX-License-Identifier: Apache-2.0
// Writes a cluster file from the output of a benchmark of collectives: the text and the JSON of
// nccl-tests, the text of rccl-tests, and that of osu_allreduce. Untrusted input. Values only; not
// tied to any thread.
//
// Ranks. By the lines "Rank N" of nccl-tests, by its threads and GPUs, or by the ratio of busbw to
//   algbw, 2 (n - 1) / n: the first that agrees with the ratio. osu_allreduce does not print them.
// Nodes. By the hosts of the ranks. A table of several nodes gives the [network]: its bandwidth is
//   the largest busbw.
// Source. nccl-tests, doc/PERFORMANCE.md and src/util.cu.
#pragma once

#include <string>

namespace howmany::reports {

// True if the text looks like one of these outputs.
bool is_collective_table(const std::string& text);

// Returns the TOML. `devices_per_node`: 0, or the ranks on a node if the text does not say. Throws
// InputError with `source` if there are no times of all-reduce, or if the ranks are not known.
std::string table_toml(const std::string& text, const std::string& source,
                       int devices_per_node = 0);

}  // namespace howmany::reports
