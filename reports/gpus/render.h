// SPDX-License-Identifier: Apache-2.0
// Renders a summary as text: the answer, the table, the files. Uses only the summary, so `howmany
// report` prints the same text as the measurement.
#pragma once

#include <string>

#include "reports/gpus/advise.h"
#include "reports/results/record.h"

namespace howmany::reports {

struct RenderOptions {
  bool color = false;
  std::string folder;  // folder of the files; empty: not printed
};

// Returns a sentence about the devices if some are no GPUs, because that limits the answer. Returns
// "" if all are GPUs.
std::string devices_note(const Summary& summary, const std::string& model);

std::string render(const Summary& summary, const std::vector<Advice>& advice,
                   const AdviceOptions& asked, const RenderOptions& options);

}  // namespace howmany::reports
