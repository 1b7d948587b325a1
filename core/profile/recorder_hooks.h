// SPDX-License-Identifier: Apache-2.0
// The interface of the recorder to range.cpp. Thread-safe.
#pragma once

#include <atomic>

#include "core/profile/recorder.h"

namespace howmany {

// The number of the running recording, or 0.
extern std::atomic<uint64_t> running_recording;

// Returns true if this thread records in that recording. Call it when a range begins.
bool enter_recording(uint64_t recording);
// Adds a span whose times are ticks(). Does nothing if the thread has not entered that recording.
void keep_span(uint64_t recording, const Span& span);

}  // namespace howmany
