// The version of this build. Part of the program, not of the library: every commit recompiles it.
#pragma once

#include <string>

namespace howmany::reports {

// The lines of `howmany --version`: version and commit, compiler, and each optional part.
std::string version_text();
// "2026-11-25"; empty outside a git work tree.
std::string commit_date();

}  // namespace howmany::reports
