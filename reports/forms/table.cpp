// SPDX-License-Identifier: Apache-2.0
#include "reports/forms/table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>

#include "core/base/text/format.h"
#include "reports/predict/forecast_json.h"

namespace howmany::reports {
namespace {

constexpr const char* kNotMeasured = "not measured";

struct TableContext {
  const Form& form;
  const FormDevices& devices;
  const ScalingRows& study;
  bool mixed = false;  // the table has rows that were not measured
};

std::string known(double value, const std::function<std::string(double)>& format) {
  return std::isfinite(value) ? format(value) : kNotMeasured;
}

std::string two_digits(double value) { return format_ratio(value); }
std::string share(double value) { return format_percent(value); }

std::string interval_cell(const TableContext& c, const ScalingRow& row) {
  const bool measured = row.evidence == Evidence::kMeasured;
  const ScalingRow& base = c.study.measured.front();
  if (measured && row.devices == base.devices && row.nodes == base.nodes) return "baseline";
  const Figure& f = row.efficiency;
  if (!f.low || !f.high) return kNotMeasured;
  return fmt::format("{} to {}{}", format_ratio(*f.low), format_ratio(*f.high),
                     !c.mixed   ? ""
                     : measured ? " (95 %)"
                                : " (90 %)");
}

std::string rate_cell(const TableContext& c, const ScalingRow& row) {
  const bool batches = c.study.of_batches && row.evidence != Evidence::kMeasured;
  const std::string end = batches ? " batches/s" : "";
  if (row.evidence == Evidence::kMeasured) return format_count(row.samples_per_s.value);
  return fmt::format("{}{} ({} to {})", format_count(row.samples_per_s.value), end,
                     format_count(*row.samples_per_s.low), format_count(*row.samples_per_s.high));
}

double hours_to_train(const TableContext& c, const ScalingRow& row) {
  const double start = std::isfinite(row.start_s.value) ? row.start_s.value : 0;
  return (c.devices.samples / row.samples_per_s.value + start) / 3600;
}

std::string unit_cell(const TableContext& c, const ScalingRow& row) {
  if (c.study.of_batches && row.evidence != Evidence::kMeasured) return "not known";
  const auto units = units_of(c.form, c.devices, row, hours_to_train(c, row));
  return units ? format_hours(*units) : "not known";
}

using Cell = std::string (*)(const TableContext&, const ScalingRow&);

struct TableColumn {
  const char *name, *title;
  Cell cell;
};

// All of kFormColumns. Their titles are in title_of() if they are empty here.
constexpr TableColumn kColumns[] = {
    {"nodes", "nodes", [](auto&, auto& row) { return std::to_string(row.nodes); }},
    {"devices", "", [](auto&, auto& row) { return std::to_string(row.devices); }},
    {"wall_time", "wall time",
     [](auto&, auto& row) { return known(row.wall_s.value, format_seconds); }},
    {"start_time", "start-up",
     [](auto&, auto& row) { return known(row.start_s.value, format_seconds); }},
    {"step_time", "time per step",
     [](auto&, auto& row) { return known(row.step_s.value, format_seconds); }},
    {"samples_per_s", "samples/s", rate_cell},
    {"speedup", "speedup", [](auto&, auto& row) { return known(row.speedup.value, two_digits); }},
    {"efficiency", "efficiency",
     [](auto&, auto& row) { return known(row.efficiency.value, two_digits); }},
    {"interval", "", interval_cell},
    {"unit_hours", "", unit_cell},
    {"gpu_utilisation", "GPU utilization",
     [](auto&, auto& row) { return known(row.gpu_utilisation, share); }},
    {"gpu_memory", "memory per device",
     [](auto&, auto& row) { return known(row.memory_bytes, format_gigabytes); }},
    {"mfu", "MFU", [](auto&, auto& row) { return known(row.mfu, share); }},
    {"evidence", "evidence", [](auto&, auto& row) { return std::string(name_of(row.evidence)); }}};
static_assert(std::size(kColumns) == kFormColumns.size());

const TableColumn& column_of(const std::string& name) {
  return *std::ranges::find(kColumns, name, &TableColumn::name);
}

std::string title_of(const TableContext& c, const TableColumn& column,
                     const std::vector<ScalingRow>& rows) {
  const std::string name = column.name;
  if (name == "devices") return c.devices.noun;
  if (name == "unit_hours") return c.form.unit.name;
  if (name != "interval") return column.title;
  const bool measured = rows.front().evidence == Evidence::kMeasured;
  return c.mixed ? "interval" : measured ? "95 % interval" : "90 % interval";
}

std::string baseline_note(const FormDevices& devices, const ScalingRows& study) {
  const ScalingRow& base = study.measured.front();
  return fmt::format("Baseline of speedup and efficiency: the smallest count, {} with {} {}.",
                     number(base.nodes, "node"), base.devices, devices.noun);
}

std::string efficiency_note(const Form& form, const ScalingRows& study) {
  if (study.by_total_time)
    return fmt::format(
        "The efficiency is p_b T_b / (p_N T_N), with p the devices and T the total execution time "
        "of a run with its start-up{}.",
        study.per_sample
            ? ", divided by the samples that it trained, because the runs trained different numbers"
            : "");
  const std::string text =
      "The efficiency is the speedup of the steps, at equal work, over the ratio of the devices.";
  return !form.total_time
             ? text
             : text + " The form wants it from total execution times, which were not measured.";
}

// Returns "" if start-up is a small part of the run in which it is the largest.
std::string start_note(const ScalingRows& study) {
  constexpr double kSmall = 0.1;
  const auto share_of = [](const ScalingRow& row) { return row.start_s.value / row.wall_s.value; };
  const ScalingRow* most = nullptr;
  for (const ScalingRow& row : study.measured)
    if (share_of(row) > (most == nullptr ? kSmall : share_of(*most))) most = &row;
  if (most == nullptr) return "";
  return fmt::format(
      "Start-up is {} of the run on {}: with longer runs, the efficiency would be that of the "
      "steps.",
      share(share_of(*most)), number(count_of(study, *most), study.over_nodes ? "node" : "device"));
}

// States the largest measured count up to which every efficiency is at least the threshold.
std::string threshold_note(const Form& form, const ScalingRows& study) {
  const ScalingRow* last = nullptr;
  for (const ScalingRow& row : study.measured) {
    if (!(row.efficiency.value >= *form.threshold)) break;
    last = &row;
  }
  const std::string unit = study.over_nodes ? "node" : "device";
  return fmt::format("Required efficiency: {}. Reached up to {}; measured up to {}.",
                     format_ratio(*form.threshold), number(count_of(study, *last), unit),
                     count_of(study, study.measured.back()));
}

std::string unit_note(const Form& form, const FormDevices& devices, const ScalingRows& study) {
  const AllocationUnit& unit = form.unit;
  if (!units_of(form, devices, study.measured.front(), 1))
    return devices.gpus ? to_fill_in(fmt::format(
                              "the {} of an hour of a GPU ({})", unit.name,
                              devices.gpu_name.empty() ? "of unknown name" : devices.gpu_name))
                        : fmt::format("{} are of GPUs, and the devices of these rows are not GPUs.",
                                      unit.name);
  std::string text = fmt::format(
      "{}: to train {} samples at the rate of the row, with its start-up if that was measured.",
      unit.name, format_count(devices.samples));
  if (!unit.factors.empty())
    text += fmt::format(" An hour of one {} is {:g} {}.", devices.gpu_name,
                        *unit.of_gpu(devices.gpu_name), unit.name);
  return unit.note.empty() ? text : text + " " + unit.note;
}

std::string configurations_note(const ScalingRows& study) {
  std::vector<std::string> all;
  for (const ScalingRow& row : study.measured)
    all.push_back(fmt::format("{}: {}", count_of(study, row), row.configuration));
  const bool same = std::ranges::all_of(study.measured, [&](const ScalingRow& row) {
    return row.configuration == study.measured.front().configuration;
  });
  if (same)
    return fmt::format("All measured rows are of {}.", study.measured.front().configuration);
  return fmt::format("Each measured row is the fastest valid configuration of its count ({}).",
                     fmt::join(all, ", "));
}

}  // namespace

std::optional<double> units_of(const Form& form, const FormDevices& devices, const ScalingRow& row,
                               double hours) {
  if (form.unit.per_node) return hours * row.nodes;
  const auto factor = devices.gpus ? form.unit.of_gpu(devices.gpu_name) : std::nullopt;
  return factor ? std::optional(hours * row.devices * *factor) : std::nullopt;
}

DocumentTable form_table(const Form& form, const FormDevices& devices, const ScalingRows& study,
                         const std::vector<ScalingRow>& rows) {
  TableContext context{form, devices, study};
  for (const ScalingRow& row : rows) context.mixed |= row.evidence != rows.front().evidence;
  DocumentTable table;
  for (const std::string& name : form.columns)
    table.head.push_back(title_of(context, column_of(name), rows));
  for (const ScalingRow& row : rows) {
    std::vector<std::string>& cells = table.rows.emplace_back();
    for (const std::string& name : form.columns)
      cells.push_back(column_of(name).cell(context, row));
  }
  return table;
}

std::vector<std::string> form_notes(const Form& form, const FormDevices& devices,
                                    const ScalingRows& study) {
  std::vector<std::string> notes = {baseline_note(devices, study), efficiency_note(form, study),
                                    configurations_note(study)};
  if (const std::string note = start_note(study); study.by_total_time && !note.empty())
    notes.push_back(note);
  if (form.threshold) notes.push_back(threshold_note(form, study));
  if (form.has("unit_hours")) notes.push_back(unit_note(form, devices, study));
  if (const int counts = study.over_nodes ? static_cast<int>(study.measured.size()) : 1;
      form.min_node_counts && counts < *form.min_node_counts)
    notes.push_back(to_fill_in(fmt::format(
        "the form requires {} numbers of nodes, and this run has {}: howmany gpus --help shows how "
        "to measure over nodes",
        *form.min_node_counts, counts)));
  return notes;
}

std::string to_fill_in(const std::string& text) { return fmt::format("[TO FILL IN: {}]", text); }

}  // namespace howmany::reports
