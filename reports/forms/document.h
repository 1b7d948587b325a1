// SPDX-License-Identifier: Apache-2.0
// Fills in the form of a computing centre from results of `howmany gpus`. Parts that only the
// author knows are marked "[TO FILL IN: ...]". Values only; not tied to any thread.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "reports/forms/form.h"
#include "reports/gpus/advise.h"
#include "reports/results/document.h"
#include "reports/results/record.h"
#include "reports/script/script.h"

namespace howmany::reports {

struct FormRun {
  Summary summary;
  AdviceOptions options;
  Script script;  // the user's own, for the batch script
};

struct FilledForm {
  Document text;
  std::vector<std::pair<std::string, std::string>> files;  // names of SVGs, and their texts
};

// `experiments`: the path of a file, see experiments.h; empty: none. Throws InputError if a run is
// not of `howmany gpus` or holds no valid measurement, and if the experiments are invalid or there
// are several runs or models for them.
FilledForm fill_form(const Form& form, const std::vector<FormRun>& runs,
                     const std::string& experiments);

}  // namespace howmany::reports
