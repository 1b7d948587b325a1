// SPDX-License-Identifier: Apache-2.0
// Turns the arguments of `howmany gpus` into a request with every default resolved.
#pragma once

#include <string>
#include <vector>

#include "reports/gpus/command.h"
#include "reports/gpus/plan.h"

namespace howmany::reports {

// Overwrites the members of `request` that the arguments set.
void apply(const Arguments& arguments, Request& request);
// Throws InputError if an option of the user's own command is given without one.
void refuse_options_of_scripts(const Arguments& arguments);
// Throws InputError if an option of our models is given with the user's own command.
void refuse_options_of_models(const Arguments& arguments);
// Resolves every default for this machine. `notices` receives sentences for the user: the GPUs, the
// reason for a backend that is chosen here, the changes to the user's own command.
Request resolve(const Arguments& arguments, std::vector<std::string>& notices);

}  // namespace howmany::reports
