// SPDX-License-Identifier: Apache-2.0
// The commit of this build.
#pragma once

namespace howmany::benches {

// Returns the output of `git describe --always --dirty`, or "unknown" outside a git work tree.
const char* build_commit();

}  // namespace howmany::benches
