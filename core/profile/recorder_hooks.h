// Where ranges enter the recording: for range.cpp alone. Thread-safe.
#pragma once

#include <atomic>

#include "core/profile/recorder.h"

namespace howmany {

// The number of the running recording; 0: none.
extern std::atomic<uint64_t> running_recording;

// Whether this thread records there; call as a range begins.
bool enter_recording(uint64_t recording);
// Its times are ticks(). Nothing when that recording is no more.
void keep_span(uint64_t recording, const Span& span);

}  // namespace howmany
