// SPDX-License-Identifier: Apache-2.0
// Kernels, copies and fills that this process ran on GPUs, recorded with CUPTI. CUPTI is opened at
// run time, and only if there is a GPU. cupti.cpp needs the headers of CUDA 13 or later; other
// builds use cupti_none.cpp. gpu_activity.cpp needs neither.
//
// Detaching. CUPTI detaches while other threads may call CUDA, with which some versions crash
//   (pytorch/kineto issues 686 and 1554). If the environment has HOWMANY_KEEP_CUPTI, it stays
//   attached and only stops to record, which costs every later CUDA call a little.
// Thread safety. Not thread-safe: start and stop from one thread.
//
//   const std::string why_not = start_gpu_activity();   // "": recording
//   ... steps ...
//   GpuActivity seen = stop_gpu_activity();
//   join_ranges(seen, stop_recording());
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/profile/recorder.h"
#include "core/profile/step_use.h"

namespace howmany {

struct GpuSpan {
  enum class Kind : uint8_t { kernel, copy, fill };
  std::string name = "";
  Kind kind = Kind::kernel;
  uint32_t device = 0, stream = 0;
  int64_t start = 0, end = 0;          // profile_clock_ns
  uint64_t bytes = 0;                  // 0 for kernels
  uint32_t correlation = 0;            // id of the LaunchCall that launched it
  Category category = Category::step;  // of the range that launched it; step: no range
  int track = -1;                      // of the thread that launched it: the rank
};

struct LaunchCall {
  uint32_t correlation = 0;
  int64_t thread = 0, start = 0;  // OS thread id; profile_clock_ns
};

struct GpuActivity {
  std::vector<GpuSpan> spans = {};
  std::vector<LaunchCall> calls = {};
  int64_t refused = 0;  // records with impossible times, e.g. of kernels that had not ended
  int64_t lost = 0;     // records that CUPTI dropped because its buffers were full
};

// Returns why recording could not start, or "" if it did. Never throws.
std::string start_gpu_activity();
// Blocks until the GPUs are idle, and detaches CUPTI (see above). Returns an empty result if
// nothing was started. Throws Error if CUPTI or a GPU fails.
GpuActivity stop_gpu_activity();

// Sets category and track of each span from the range that launched it. The time and thread of the
// launch call identify the range.
void join_ranges(GpuActivity& activity, const Recording& ranges);

// A rank's GPU time in one step, in nanoseconds; total = compute + comm + copy + idle. comm
// excludes time concurrent with compute. copy excludes time concurrent with compute or comm.
// All work that a comm range launched counts as comm.
struct GpuUse {
  int64_t compute = 0, comm = 0, copy = 0, idle = 0, hidden_comm = 0;
};
std::vector<GpuUse> gpu_uses(const GpuActivity& activity, const std::vector<StepUse>& steps,
                             int track = -1);

}  // namespace howmany
