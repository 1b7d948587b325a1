// A recording as Perfetto's own format, for ui.perfetto.dev and trace_processor: a group of tracks
// with a name, in it a track for each thread and each stream of a GPU. Files of several recordings
// may be joined end to end: each is a group of its own, and all begin at time 0, so that they can
// be compared. Pure functions.
//
//   append_file("trace.pftrace", perfetto_trace(stop_recording(), "ddp/mlp, 2 devices"));
#pragma once

#include <string>

#include "core/profile/gpu_activity.h"
#include "core/profile/recorder.h"

namespace howmany {

std::string perfetto_trace(const Recording& recording, const std::string& group,
                           const GpuActivity& gpus = {});

}  // namespace howmany
