// The commit of this build.
#pragma once

namespace howmany::benches {

// As `git describe --always --dirty` printed it; "unknown" outside a git work tree.
const char* build_commit();

}  // namespace howmany::benches
