// The summary of `howmany backend` as tables and sentences. Values only; not tied to any thread.
#pragma once

#include <string>
#include <vector>

#include "reports/comm/advise.h"
#include "reports/results/record.h"

namespace howmany::reports {

// As tables and sentences.
std::string render_backend(const BackendAdvice& advice,
                           const std::vector<Measurement>& measurements, bool color);

// What `howmany backend` or `howmany transfer` printed, from its summary alone; empty for
// another's.
std::string render_suites(const Summary& summary, bool color);

}  // namespace howmany::reports
