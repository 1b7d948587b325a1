// What the GPUs of this process did, kernel by kernel and copy by copy, from CUPTI: opened at run
// time, and only where there is a GPU. cupti.cpp is built with the headers of CUDA 13 or later,
// cupti_none.cpp otherwise; gpu_activity.cpp needs neither. Start and stop from one thread.
//
//   const std::string why_not = start_gpu_activity();   // "": watching
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
  uint64_t bytes = 0;                  // of copies and fills
  uint32_t correlation = 0;            // with what launched it
  Category category = Category::step;  // of the range that launched it; step: of none
  int track = -1;                      // ... and its rank
};

struct LaunchCall {
  uint32_t correlation = 0;
  int64_t thread = 0, start = 0;  // as the operating system numbers threads; profile_clock_ns
};

struct GpuActivity {
  std::vector<GpuSpan> spans = {};
  std::vector<LaunchCall> calls = {};
  int64_t refused = 0;  // with times that cannot be, as of kernels that had not ended
  int64_t lost = 0;     // that CUPTI had no room for
};

// Why it cannot be watched, in a sentence; empty when it is. Never throws.
std::string start_gpu_activity();
// Waits for the GPUs, and leaves nothing of CUPTI behind. Empty when nothing was started.
GpuActivity stop_gpu_activity();

// Tells each span whose range launched it, by the time and the thread of the call.
void join_ranges(GpuActivity& activity, const Recording& ranges);

// Of one rank's GPUs in a step; total = compute + comm + copy + idle. comm and copy are what runs
// beside no compute, or no communication; a kernel launched in a comm range communicates.
struct GpuUse {
  int64_t compute = 0, comm = 0, copy = 0, idle = 0, hidden_comm = 0;
};
std::vector<GpuUse> gpu_uses(const GpuActivity& activity, const std::vector<StepUse>& steps,
                             int track = -1);

}  // namespace howmany
