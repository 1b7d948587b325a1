// SPDX-License-Identifier: Apache-2.0
// The version of this build. Part of the program, not of the library, because every commit
// recompiles it.
#pragma once

#include <string>

namespace howmany::reports {

// Returns the output of `howmany --version`: version and commit, compiler, each optional part.
std::string version_text();

}  // namespace howmany::reports
