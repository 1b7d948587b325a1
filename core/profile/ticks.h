// The cheapest clock here, which a range looks at twice: the processor's own counter where the
// kernel trusts it on all cores, else CLOCK_MONOTONIC. Ticks mean something between two pairs of
// both clocks only. For the recorder alone. Thread-safe.
#pragma once

#include <cstdint>

namespace howmany {

int64_t ticks();

}  // namespace howmany
