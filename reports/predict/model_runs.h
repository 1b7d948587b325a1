// SPDX-License-Identifier: Apache-2.0
// Asks the programs of howmany about steps of a model on GPUs that are not here. They run without a
// device. One thread at a time.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "reports/predict/preset.h"

namespace howmany::reports {

// Throws InputError if there is no such model.
ModelCosts read_costs(const std::string& model);

// Returns a sentence on the memory that a step of `ddp` with adamw needs on each GPU. Throws
// InputError if that is more than the cluster's.
std::string memory_sentence(const std::string& model, const std::string& precision,
                            const Preset& preset);

// Returns the steps of preset.mode on each of `counts` GPUs, with preset.batch samples on each, and
// of `single` if 1 is among them. Steps of ddp have no seconds. A step that does not fit the
// cluster's memory with adamw has a reason instead. Throws InputError if a program fails.
std::map<int, ModeStep> steps_of_mode(const std::string& model, const std::string& precision,
                                      const Preset& preset, const std::vector<int>& counts);

}  // namespace howmany::reports
