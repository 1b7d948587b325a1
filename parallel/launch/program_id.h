// SPDX-License-Identifier: Apache-2.0
// Identifies the program of a rank. Ranks with different builds or arguments could deadlock or
// compute different results, so connect() rejects them. Thread-safe.
#pragma once

#include <string>
#include <vector>

namespace howmany {

// Returns the build id and the arguments of this process: "4be2f7c1d0a35e88 --mode ddp".
std::string this_program();
std::string host_name();

// Describes the ranks whose program differs from rank 0's. Returns "" if there are none.
std::string difference_of(const std::vector<std::string>& programs);

}  // namespace howmany
