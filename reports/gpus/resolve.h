// From the arguments of `howmany gpus` to a request with every default resolved.
#pragma once

#include <string>

#include "reports/gpus/command.h"
#include "reports/gpus/plan.h"

namespace howmany::reports {

// What the arguments change in `request`; defaults stay.
void apply(const Arguments& arguments, Request& request);
// Every default resolved for this machine. `why` becomes the reason of a choice of backend, or
// stays empty.
Request resolve(const Arguments& arguments, std::string* why = nullptr);

}  // namespace howmany::reports
