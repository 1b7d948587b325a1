// SPDX-License-Identifier: Apache-2.0
// The memory of a step of the user's own script, and the answer. Values only, except that
// measure_memory() runs programs.
//
// On a GPU, PyTorch's allocator counts it. Without one, the tensors of a step are counted and given
// to a model of that allocator (torch_hook/memory.py): those on a GPU that the script takes for its
// own, or those of the CPU if it trains there. With n > 1, one process is one of n ranks with
// collectives that take no time: what FSDP divides is divided.
#pragma once

#include <algorithm>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "reports/script/script.h"

namespace howmany::reports {

// Bytes on each device.
struct ScriptMemory {
  int ranks = 1;
  double parameters = 0, gradients = 0, optimizer = 0;
  double peak = 0;      // of all tensors
  double reserved = 0;  // by the allocator: in pools, in segments of 2 and 20 MiB
  bool on_gpu = false;
  std::string why = {};  // it could not run; then the rest is void
  // Not all of the others need to be there at the peak.
  double activations() const { return std::max(0.0, peak - parameters - gradients - optimizer); }
};

// Runs the script once, or twice if it trains on the CPU. `device_memory`: bytes, which the script
// sees; 0: unknown. Throws InputError.
ScriptMemory measure_memory(const Script& script, int ranks, int64_t device_memory = 0);

struct MemoryQuestion {
  std::string script;         // the name that results show
  int64_t device_memory = 0;  // bytes; 0: not given
};
// True if `reserved` leaves 10 % of the device's memory to the context and libraries.
bool fits(const ScriptMemory& memory, int64_t device_memory);
// One sentence: the fewest ranks that fit.
std::string answer_of(const MemoryQuestion& question, const std::vector<ScriptMemory>& rows);
std::string render_memory(const MemoryQuestion& question, const std::vector<ScriptMemory>& rows);
// Schema howmany.memory/1, with `script` instead of `model`.
nlohmann::ordered_json to_json(const MemoryQuestion& question,
                               const std::vector<ScriptMemory>& rows);

}  // namespace howmany::reports
