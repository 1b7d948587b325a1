// SPDX-License-Identifier: Apache-2.0
#include "reports/forms/document.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "core/base/schema/context.h"
#include "core/base/schema/flags.h"
#include "core/base/schema/parameters.h"
#include "core/base/text/files.h"
#include "core/base/text/json.h"
#include "reports/forms/experiments.h"
#include "reports/forms/plots.h"
#include "reports/forms/table.h"
#include "reports/gpus/plan.h"
#include "reports/gpus/proposal.h"
#include "reports/gpus/render.h"
#include "reports/gpus/slurm.h"
#include "reports/results/device_kind.h"
#include "reports/results/plain_json.h"

namespace howmany::reports {
namespace {

constexpr int64_t kMaxExperimentsFile = 1 << 20;

std::string surety_text(const std::string& sure) {
  if (sure == "read") return "its text was read";
  if (sure == "abstract") return "only an excerpt of its text was read";
  return "from memory, not verified";
}

std::string source_text(const Form& form) {
  return fmt::format(
      "Made by howmany for the form {}. Source of its requirements: {}; {}, {}. The centre may "
      "have changed them since: check them before you submit.",
      form.name, form.source, surety_text(form.sure), form.read);
}

FormDevices devices_of(const FormRun& run, const Request& request) {
  const DeviceKind kind = device_kind(fmt::format("{}", fmt::join(request.devices, ",")));
  const nlohmann::json& gpu = json_member(run.summary.context, context::kGpu);
  return {std::string(noun_of(kind)) + "s", kind == DeviceKind::kGpu,
          gpu.is_string() ? json_text(gpu) : "", run.options.samples_to_train};
}

// Writes one document and numbers its plots.
class FormWriter {
 public:
  FormWriter(const Form& form, const std::string& experiments)
      : form_(form), experiments_(experiments) {}

  void add_start() {
    add(Heading{1, form_.title});
    add(Paragraph{source_text(form_)});
    for (const FormSection& section : form_.sections) {
      add(Heading{2, section.title});
      add(Paragraph{to_fill_in(section.text)});
    }
  }

  void add_model(const FormRun& run, const Request& request, const Advice& advice) {
    const ScalingRows study = scaling_rows(run.summary, advice.model, form_.total_time);
    const FormDevices devices = devices_of(run, request);
    add(Heading{2, fmt::format("{}: {}", advice.model, scaling_of(run.summary, advice.model))});
    if (advice.recommended) add(Paragraph{advice.because});
    add_rows(devices, study);
    for (const std::string& note : form_notes(form_, devices, study)) add(Paragraph{note});
    if (const std::string note = devices_note(run.summary, advice.model); !note.empty())
      add(Paragraph{note});
    add_plots(study, devices);
    if (!form_.together && !study.beyond.empty()) add_projections(study, devices);
    if (!experiments_.empty()) add_experiments(study, devices);
  }

  void add_end(const std::vector<FormRun>& runs, const std::vector<Advice>& advice) {
    if (form_.experiments && experiments_.empty()) {
      add(Heading{2, "Experiments"});
      add(
          Paragraph{to_fill_in(fmt::format("the experiments of the project ({} FILE computes the "
                                           "table)",
                                           flag::kExperiments.name))});
    }
    if (form_.batch_script) add_batch_script(runs.front(), advice);
    if (!form_.software) return;
    add(Heading{2, "Software and method"});
    for (const FormRun& run : runs)
      for (auto& part : method_of(run.summary)) add(std::move(part));
    add(
        Paragraph{to_fill_in("versions of what your command uses and howmany does not know: "
                             "modules, frameworks, RCCL")});
  }

  FilledForm filled() { return std::move(filled_); }

 private:
  template <typename Part>
  void add(Part part) {
    filled_.text.emplace_back(std::move(part));
  }

  void add_rows(const FormDevices& devices, const ScalingRows& study) {
    std::vector<ScalingRow> rows = study.measured;
    if (form_.together) rows.insert(rows.end(), study.beyond.begin(), study.beyond.end());
    add(form_table(form_, devices, study, rows));
    if (!form_.together || study.beyond.empty()) return;
    add(Paragraph{"The rows that are not measured are projections. They were made as follows."});
    add_sentences(study, devices);
  }

  void add_projections(const ScalingRows& study, const FormDevices& devices) {
    Form form = form_;
    if (!form.has("evidence")) form.columns.emplace_back("evidence");
    add(Heading{3, "Projections"});
    add(Paragraph{"These rows are no measurements."});
    if (study.by_total_time)
      add(Paragraph{"Their speedup and efficiency are of the steps, without start-up."});
    add_sentences(study, devices);
    add(form_table(form, devices, study, study.beyond));
  }

  void add_sentences(const ScalingRows& study, const FormDevices& devices) {
    for (const std::string& sentence : study.sentences) add(Paragraph{sentence});
    add(Paragraph{fmt::format("Their nodes are of {} {}.", study.devices_per_node, devices.noun)});
  }

  void add_plots(const ScalingRows& study, const FormDevices& devices) {
    const std::string number = models_++ == 0 ? "" : fmt::format("-{}", models_);
    for (FormPlot& plot : form_plots(form_, study, devices.noun)) {
      const std::string name = fmt::format("scaling-{}{}-{}", form_.name, number, plot.kind);
      add(Plot{plot.caption, name});
      filled_.files.emplace_back(name + ".svg", std::move(plot.svg));
    }
  }

  void add_experiments(const ScalingRows& study, const FormDevices& devices) {
    const std::vector<Experiment> all =
        read_experiments(read_text(experiments_, kMaxExperimentsFile), experiments_, study);
    add(Heading{2, "Experiments"});
    add(experiments_table(all, form_.unit.name, [&](const ScalingRow& row, double hours) {
      return units_of(form_, devices, row, hours);
    }));
  }

  void add_batch_script(const FormRun& run, const std::vector<Advice>& advice) {
    add(Heading{2, "Batch script"});
    try {
      std::istringstream script(slurm_script(run.summary, advice, run.options, run.script));
      ShellLines shell;
      for (std::string line; std::getline(script, line);) shell.lines.push_back(line);
      add(std::move(shell));
    } catch (const InputError& error) {
      add(Paragraph{to_fill_in(fmt::format("a representative batch script; {}", error.what()))});
    }
  }

  const Form& form_;
  const std::string& experiments_;
  FilledForm filled_;
  int models_ = 0;
};

}  // namespace

FilledForm fill_form(const Form& form, const std::vector<FormRun>& runs,
                     const std::string& experiments) {
  FormWriter writer(form, experiments);
  writer.add_start();
  std::vector<Advice> first;
  for (const FormRun& run : runs) {
    const auto asked = run.summary.context.find("howmany_request");
    const std::vector<Advice> all = asked == run.summary.context.end()
                                        ? std::vector<Advice>()
                                        : advise(run.summary.measurements, run.options);
    if (all.empty()) throw InputError("no proposal: the run holds no measurement of howmany gpus");
    if (!experiments.empty() && (runs.size() > 1 || all.size() > 1))
      throw InputError(fmt::format("{} is for one run of one model", flag::kExperiments.name));
    const Request request = request_from_json(*asked, "summary.json");
    for (const Advice& advice : all) writer.add_model(run, request, advice);
    if (first.empty()) first = all;
  }
  writer.add_end(runs, first);
  return writer.filled();
}

}  // namespace howmany::reports
