// A recording as Perfetto's own format, for ui.perfetto.dev and trace_processor: a group with a
// name, in it a track for each rank, under that those of the threads and of the streams of GPUs
// that work for it. Files of several recordings may be joined end to end: each is a group of its
// own that begins at time 0, so that they can be compared, or a part of one, as the processes of a
// run are. Pure functions.
//
//   append_file("trace.pftrace", perfetto_trace(stop_recording(), {"ddp/mlp, 2 devices"}));
#pragma once

#include <string>

#include "core/profile/gpu_activity.h"
#include "core/profile/recorder.h"

namespace howmany {

struct TracePart {
  std::string group;      // its name
  uint64_t id = 0;        // a number that no other group of the file has; 0: made up
  int part = 0;           // of the group; 0 brings the name
  int64_t origin = 0;     // of time 0, by this part's clock and before its first span; 0: the start
  std::string note = "";  // what is said of its ranks
};

std::string perfetto_trace(const Recording& recording, const TracePart& part,
                           const GpuActivity& gpus = {});
// In so many bytes, more than names alone take: takes what began latest out of both until it fits.
std::string perfetto_trace_within(size_t bytes, Recording& recording, const TracePart& part,
                                  GpuActivity& gpus);

}  // namespace howmany
