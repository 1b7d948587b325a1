// SPDX-License-Identifier: Apache-2.0
// Old names of flags, which are accepted for one version.
#pragma once

#include <string>
#include <vector>

namespace howmany {

// Returns the arguments of `program` with the current names of its flags, up to "--". If `warns`,
// prints one line on stderr for each old name. `program` is a program such as "loader_bench", or a
// command of howmany such as "workers".
std::vector<std::string> with_current_names(const std::string& program,
                                            std::vector<std::string> arguments, bool warns = true);

}  // namespace howmany
