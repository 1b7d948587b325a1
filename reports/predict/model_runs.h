// SPDX-License-Identifier: Apache-2.0
// Runs the programs of howmany that compute steps of a model on devices that are not here. They
// need no device. One thread at a time.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "reports/predict/preset.h"

namespace howmany::reports {

// Throws InputError if there is no such model.
ModelWork read_work(const std::string& model);

// Returns true if steps of the mode are computed: over ranks, with one device in each.
bool is_computable(const std::string& mode);

// A step of mode `single` on one device, from which the steps of other modes are computed.
struct ReferenceStep {
  std::string model, precision;  // "f32", "tf32" or "bf16"
  int64_t samples = 0;
  double seconds = 0;
  Range fixed;               // of it, seconds that do not depend on the samples
  double flop_per_byte = 0;  // of the device; 0: not known
};
struct ShareOfDevice {
  std::string mode;
  int64_t samples = 0;
};
// Returns the step on each number of devices, or why there is none. Throws InputError if the
// cluster has no such number, or if the program fails.
std::map<int, ModeStep> computed_steps(const ReferenceStep& step, const Cluster& cluster,
                                       const std::map<int, ShareOfDevice>& shares);

// Returns a sentence on the memory that a step of `ddp` with adamw needs on each GPU. Throws
// InputError if that is more than the cluster's.
std::string memory_sentence(const std::string& model, const std::string& precision,
                            const Preset& preset);

// Returns the steps of preset.mode on each of `counts` GPUs, with preset.batch samples on each, and
// of `single` if 1 is among them. A step that does not fit the cluster's memory with adamw has a
// reason instead. Throws InputError if a program fails.
std::map<int, ModeStep> steps_of_mode(const std::string& model, const std::string& precision,
                                      const Preset& preset, const std::vector<int>& counts);

}  // namespace howmany::reports
