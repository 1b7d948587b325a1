// SPDX-License-Identifier: Apache-2.0
// Alone in this file, because every commit recompiles it.
#include "benches/common/build_commit.h"

#include <commit.h>

namespace howmany::benches {

const char* build_commit() { return HM_COMMIT; }

}  // namespace howmany::benches
