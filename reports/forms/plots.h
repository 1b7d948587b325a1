// SPDX-License-Identifier: Apache-2.0
// The plots of a form as SVG files. Values only; not tied to any thread.
#pragma once

#include <string>
#include <vector>

#include "reports/forms/form.h"
#include "reports/forms/rows.h"

namespace howmany::reports {

struct FormPlot {
  std::string kind;     // of kFormPlots
  std::string caption;  // "Efficiency by nodes"
  std::string svg;      // the text of the file
};

// `noun` names the devices: "GPUs". There is no plot of fewer than two measured figures.
// Projections are in the plots unless the efficiency is of total times, which nothing predicts.
std::vector<FormPlot> form_plots(const Form& form, const ScalingRows& rows,
                                 const std::string& noun);

}  // namespace howmany::reports
