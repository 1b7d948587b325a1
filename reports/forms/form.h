// SPDX-License-Identifier: Apache-2.0
// The forms in which computing centres want a scaling study, for `--emit proposal=FORM`. A form is
// a file FORM.toml of this folder, built into the program. To add a form, add its file. Values
// only; not tied to any thread.
//
//   title = "..."                   # of the document
//   source = "..."                  # what the centre requires, and where
//   read = "2026-11-29"             # when that was read
//   sure = "read"                   # or "abstract" (an excerpt), "memory" (not verified)
//   threshold = 0.75                # optional: the efficiency that the centre requires
//   min_node_counts = 3             # optional: how many numbers of nodes it requires
//   efficiency = "rate"             # or "total_time": of whole runs, with their start
//   axes = "linear"                 # or "log"
//   columns = ["nodes", ...]        # of kFormColumns, in the centre's order
//   plots = ["speedup", ...]        # of kFormPlots
//   projections = "apart"           # rows that were not measured: or "together" with the others
//   batch_script, software, experiments = true   # parts of the document
//   [unit]                          # of the allocation
//   name = "node-hours"
//   per = "node"                    # or "gpu"
//   note = "..."                    # optional
//   [[unit.factor]]                 # units of an hour of a GPU, if the centre weighs these
//   gpu = "A100 40GB"               #   words of its name
//   value = 4.0
//   [[section]]                     # that only the author can write
//   title = "..."
//   text = "..."                    # to be filled in
#pragma once

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace howmany::reports {

inline constexpr std::array kFormColumns = {
    "nodes",           "devices",    "wall_time",  "start_time", "step_time",
    "samples_per_s",   "speedup",    "efficiency", "interval",   "unit_hours",
    "gpu_utilisation", "gpu_memory", "mfu",        "evidence"};
inline constexpr std::array kFormPlots = {"speedup", "efficiency", "time"};

struct AllocationUnit {
  std::string name, note;
  bool per_node = true;
  std::vector<std::pair<std::string, double>> factors;  // words of a GPU's name; units per hour

  // Returns the units of an hour of a GPU: 1 without factors, nullopt if none is known for it.
  std::optional<double> of_gpu(const std::string& gpu) const;
};

struct FormSection {
  std::string title, text;
};

struct Form {
  std::string name, title, source, read, sure;
  std::optional<double> threshold, min_node_counts;
  bool total_time = false, linear = true, together = false;
  bool batch_script = false, software = false, experiments = false;
  std::vector<std::string> columns, plots;
  AllocationUnit unit;
  std::vector<FormSection> sections;

  bool has(const std::string& column) const;
};

std::vector<std::string> form_names();  // sorted
// Throws InputError that lists the forms if there is no such form.
Form find_form(const std::string& name);

struct FormChoice {
  std::string form;
  bool latex = false;
};
// Parses "proposal=FORM" or "proposal=FORM:latex". Throws InputError if there is no such form or
// format.
FormChoice parse_form_choice(const std::string& emit);

// Throws InputError with file and line.
Form parse_form(const std::string& text, const std::string& source);

}  // namespace howmany::reports
