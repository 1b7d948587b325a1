// SPDX-License-Identifier: Apache-2.0
// The line that a new mode adds to HM_MODES in parallel/modes/mode.h. This example has a list of
// its own, so that the rest of howmany does not contain the mode.
#pragma once

#include "parallel/modes/mode.h"

#define HM_EXAMPLE_MODES(X)                                           \
  X(summed, "the batch, over ranks, gradients summed after backward", \
    ModeTraits{.over_ranks = true}, "")

namespace howmany::modes {
#define X(name, what, traits, options) std::unique_ptr<Mode> name(ModeArgs args);
HM_EXAMPLE_MODES(X)
#undef X
}  // namespace howmany::modes
