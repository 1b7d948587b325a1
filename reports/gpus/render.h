// A summary as text: the answer first, then the table, then where the files are. Rendered from the
// summary alone, so that `howmany report` prints what the measurement printed.
#pragma once

#include <string>

#include "reports/gpus/advise.h"
#include "reports/results/record.h"

namespace howmany::reports {

struct RenderOptions {
  bool color = false;
  std::string folder;  // where the files are; empty: not told
};

// What devices these were, where that limits what the answer is worth; empty for GPUs alike.
std::string devices_note(const Summary& summary, const std::string& model);

std::string render(const Summary& summary, const std::vector<Advice>& advice,
                   const AdviceOptions& asked, const RenderOptions& options);

}  // namespace howmany::reports
