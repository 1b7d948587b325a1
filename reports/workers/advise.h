// From probes, bounds and measured points to one answer: the fewest loader workers that feed the
// devices, or that none can and what stops them. Only measured points win; predictions choose what
// is measured next and are told as predictions. Values only; not tied to any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/workers/points.h"

namespace howmany::reports {

struct WorkersLever {
  std::string what;
  double gain = 1;  // of the samples/s, predicted
};

struct WorkersAdvice {
  std::optional<int> recommended;
  bool feeds = false;      // the demand, within the stall; false without a demand
  bool certain = true;     // the interval leaves no doubt
  bool disturbed = false;  // by other programs, see disturbance.h
  std::string because;     // one sentence
  std::string limit;       // "decoding on 2 cores"
  std::vector<std::string> notes;
  std::vector<WorkersLever> levers;  // best first
  std::string pytorch, slurm;        // lines to paste; empty without an answer
};
WorkersAdvice advise_workers(const WorkersFacts& facts);

}  // namespace howmany::reports
