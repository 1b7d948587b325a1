// SPDX-License-Identifier: Apache-2.0
// Fills in every form from an untrusted summary, and reads untrusted experiments. Either throws
// InputError, or the hours are finite and above 0.
#include <cmath>

#include "core/base/text/json.h"
#include "reports/forms/document.h"
#include "reports/forms/experiments.h"
#include "reports/results/latex.h"
#include "tests/reports/examples.h"
#include "tests/support/fuzz_driver.h"

using namespace howmany;
using namespace howmany::reports;

namespace {

Summary study() {
  Request request;
  request.workloads = {{"mlp", 64}};
  request.modes = {"single", "ddp"};
  request.backends = {"gloo"};
  request.devices = {"cuda:0", "cuda:1", "cuda:2", "cuda:3"};
  request.counts = {1, 2, 4};
  Summary summary = example_curve();
  summary.context["howmany_request"] = to_json(request);
  for (Measurement& m : summary.measurements) {
    m.parameters["nodes"] = m.parameters["devices"];
    m.metrics["wall_s"] = {30, "s", 29, 31, 3, "rounds"};
    m.metrics["start_s"] = {10, "s", {}, {}, 3, "rounds"};
  }
  return summary;
}

}  // namespace

std::vector<std::string> fuzz_seeds() {
  return {
      dump_json(to_json(study())),
      "[[experiment]]\nname = \"a\"\nnodes = 2\nsamples = 3.6e6\nruns = 3\n[[experiment]]\nname "
      "= \"b\"\ndevices = 4\nhours = 2.5\nruns = 10\n"};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Summary kStudy = study();
  static const ScalingRows kRows = scaling_rows(kStudy, "mlp", false);
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    if (!text.starts_with("{")) {
      for (const Experiment& one : read_experiments(text, "f", kRows))
        if (!std::isfinite(one.hours) || one.hours <= 0 || one.runs < 1) std::abort();
      return 0;
    }
    const Summary summary = summary_from_json(parse_json(text, "fuzz"), "fuzz");
    const AdviceOptions options = options_from_answer(summary.answer, "fuzz");
    for (const std::string& name : form_names()) {
      const FilledForm filled = fill_form(find_form(name), {{summary, options, {}}}, "");
      to_markdown(filled.text);
      to_latex(filled.text);
    }
  } catch (const InputError&) {
  }
  return 0;
}
