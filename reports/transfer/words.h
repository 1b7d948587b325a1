// Copies to, from and between GPUs in sentences. Values only; not tied to any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/transfer/gpu.h"

namespace howmany::reports {

// Whether pinning pays, in one sentence; nothing where no GPU has copies of both memories.
struct PinningAnswer {
  std::string words;
  bool certain = true;
};
std::optional<PinningAnswer> pinning_in_words(const GpuCopies& copies);
std::vector<std::string> notes_of(const GpuCopies& copies);  // what else they tell

}  // namespace howmany::reports
