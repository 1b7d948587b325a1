// SPDX-License-Identifier: Apache-2.0
// Measures this program's own loader with loader_bench. One thread.
#pragma once

#include <memory>

#include "core/base/budget.h"
#include "reports/workers/bench.h"
#include "reports/workers/measure.h"

namespace howmany::reports {

// `has_files`: a first epoch reads them from storage.
std::unique_ptr<WorkersBench> make_loader_bench(BenchRuns& runs, const Budget& budget,
                                                bool has_files);

}  // namespace howmany::reports
