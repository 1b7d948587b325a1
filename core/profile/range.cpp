// SPDX-License-Identifier: Apache-2.0
#include "core/profile/range.h"

#include <iterator>

#include "core/profile/range_tool.h"
#include "core/profile/recorder_hooks.h"
#include "core/profile/ticks.h"

namespace howmany {

const char* name_of(Category category) {
  constexpr const char* kNames[] = {"step", "compute", "optimizer", "data", "copy", "comm"};
  static_assert(std::size(kNames) == kCategories);
  return kNames[static_cast<uint32_t>(category) - 1];
}

Range::Range(Category category, const char* name, uint64_t payload) {
  push_to_tool(category, name, payload);
  const uint64_t recording = running_recording.load(std::memory_order_relaxed);
  if (recording == 0 || !enter_recording(recording)) return;
  recording_ = recording;
  name_ = name;
  payload_ = payload;
  category_ = category;
  start_ = ticks();
}

Range::~Range() {
  if (recording_ != 0)
    keep_span(recording_, {.name = name_,
                           .payload = payload_,
                           .start = start_,
                           .end = ticks(),
                           .category = category_});
  pop_from_tool();
}

}  // namespace howmany
