// SPDX-License-Identifier: Apache-2.0
// Describes copies to, from and between GPUs in sentences. Values only; not tied to any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/transfer/gpu.h"

namespace howmany::reports {

// Returns a sentence on whether pinning pays, or nullopt if no GPU has copies of both kinds of
// memory.
struct PinningAnswer {
  std::string reason;  // a code of core/base/schema/reasons.h
  std::string words;
  bool certain = true;
};
std::optional<PinningAnswer> pinning_in_words(const GpuCopies& copies);
std::vector<std::string> notes_of(const GpuCopies& copies);  // all other sentences

}  // namespace howmany::reports
