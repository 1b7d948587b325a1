// SPDX-License-Identifier: Apache-2.0
// Writes a recording in Perfetto's format, for ui.perfetto.dev and trace_processor. Pure functions.
//
// Tracks. A named group contains a track per rank. Tracks of the rank's threads and GPU streams are
//   below it.
// Joining. Files may be concatenated. Each recording is a group of its own that starts at time 0,
// so
//   that they can be compared. Or each is a part of one group, such as one process of a run.
//
//   append_file("trace.pftrace", perfetto_trace(stop_recording(), {"ddp/mlp, 2 devices"}));
#pragma once

#include <string>

#include "core/profile/gpu_activity.h"
#include "core/profile/recorder.h"

namespace howmany {

struct TracePart {
  std::string group;      // name of the group
  uint64_t id = 0;        // unique id of the group in the file; 0: derived from the recording
  int part = 0;           // index of the part in its group; part 0 names the group
  int64_t origin = 0;     // time 0 by this part's clock, before its first span; 0: its start
  std::string note = "";  // appended to the names of its ranks
};

std::string perfetto_trace(const Recording& recording, const TracePart& part,
                           const GpuActivity& gpus = {});
// Limits the size to `bytes`, which must exceed the size of the names alone. Removes the latest
// spans from both arguments until the trace fits.
std::string perfetto_trace_within(size_t bytes, Recording& recording, const TracePart& part,
                                  GpuActivity& gpus);

}  // namespace howmany
