// SPDX-License-Identifier: Apache-2.0
// The answer of `howmany workers -- CMD`: the fewest loader workers with which the user's own
// script trains as fast as with any number. Numbers of workers took turns while the script trained;
// a round gives every number one turn. `--worker-type pytorch` is answered likewise, by a script
// that only loads. Values only; not tied to any thread.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/base/statistics.h"
#include "reports/workers/advise.h"
#include "reports/workers/bounds.h"
#include "reports/workers/demand.h"
#include "reports/workers/measure.h"

namespace howmany::reports {

struct ScriptFacts {
  std::string script;       // the name that results show
  bool only_loads = false;  // it takes batches at the rate of the demand, or as fast as it can
  Demand demand;            // in that case; 0: none
  int ranks = 1;            // each with its own loader
  int64_t batch = 0;        // samples per step and rank
  double sample_bytes = 0;
  int prefetch = 2;  // batches ahead of each worker
  bool gpu = false;
  WorkersPoints points;
  std::vector<WorkerBound> bounds;
  double busy_elsewhere = 0;
};

// Adds the turns of a run of script_bench. Its rounds follow those that are there. Throws
// InputError if the files do not fit together.
void add_turns(ScriptFacts& facts, const std::vector<BenchRow>& rows,
               const std::vector<SampleLine>& samples);

// Returns the numbers for a second run, see search.h. Empty if nothing was measured.
std::vector<int> numbers_to_refine(const ScriptFacts& facts);

WorkersAdvice advise_script(const ScriptFacts& facts);
// Returns the member `workers` of the summary's answer. render_workers() shows it.
nlohmann::ordered_json to_json(const ScriptFacts& facts, const WorkersAdvice& advice);

}  // namespace howmany::reports
