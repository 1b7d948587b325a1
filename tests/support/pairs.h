// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>

namespace howmany::testing_support {

// Returns true if tests of many worlds shall use few: HOWMANY_TEST_PAIRS is set, as for builds in
// which a step is slow, and HOWMANY_NIGHTLY is not.
inline bool pairs_only() {
  return std::getenv("HOWMANY_TEST_PAIRS") != nullptr && std::getenv("HOWMANY_NIGHTLY") == nullptr;
}

}  // namespace howmany::testing_support
