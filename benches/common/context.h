// SPDX-License-Identifier: Apache-2.0
// The context in the JSON of every bench.
#pragma once

#include <map>
#include <string>

namespace howmany::benches {

// Adds the commit, compiler, flags, CPU, first GPU, allowed cores, governor, memory and library
// versions as custom context, and `more` (world, launcher). Never adds the environment.
void add_context(const std::map<std::string, std::string>& more = {});

}  // namespace howmany::benches
