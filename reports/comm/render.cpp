// SPDX-License-Identifier: Apache-2.0
// Renders the tables of `howmany backend`: one per operation, with sizes as rows and backends as
// columns.
#include "reports/comm/render.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>

#include "core/base/schema/metrics.h"
#include "core/base/schema/parameters.h"
#include "core/base/statistics.h"
#include "core/base/text/bytes.h"
#include "core/base/text/format.h"
#include "core/base/text/table.h"
#include "reports/comm/advise.h"
#include "reports/results/cell.h"

namespace howmany::reports {
namespace {

// The measurements of the suite "backend" by operation, backend and size.
class CellIndex {
 public:
  explicit CellIndex(const std::vector<Measurement>& measurements) {
    for (const Measurement& m : measurements) {
      if (m.suite != "backend") continue;
      const std::string bytes = parameter_of(m, parameter::kBytes),
                        dtype = parameter_of(m, parameter::kDtype),
                        devices = parameter_of(m, parameter::kDevices);
      cells_.try_emplace({m.name, dtype, devices, bytes}, &m);
      const std::string op = m.name.substr(0, m.name.find('/'));
      sizes_[{op, dtype, devices}].insert(std::strtod(bytes.c_str(), nullptr));
    }
  }

  // Returns nullptr if the cell was not measured.
  const Measurement* find(const OperationResults& operation, const std::string& backend,
                          double bytes) const {
    const auto cell =
        cells_.find({operation.op + "/" + backend, operation.dtype,
                     std::to_string(operation.devices), fmt::format("{:.0f}", bytes)});
    return cell == cells_.end() ? nullptr : cell->second;
  }

  // Returns every size of the operation, including failed and skipped ones.
  std::set<double> sizes(const OperationResults& operation) const {
    const auto found =
        sizes_.find({operation.op, operation.dtype, std::to_string(operation.devices)});
    return found == sizes_.end() ? std::set<double>() : found->second;
  }

 private:
  std::map<std::array<std::string, 4>, const Measurement*> cells_;
  std::map<std::array<std::string, 3>, std::set<double>> sizes_;
};

std::vector<std::string> cells(const Measurement* m) {
  if (m == nullptr) return {"-", "-", "-"};
  if (has_failed(*m)) return {"failed", "", ""};
  if (!why_skipped(*m).empty()) return {"skipped", "", ""};
  const double busbw = value_of(*m, metric::kBusbwBytesPerS);
  return {format_seconds(value_of(*m, metric::kMedianS)),
          format_seconds(value_of(*m, metric::kPipelinedS)),
          std::isfinite(busbw) ? format_rate(busbw) : "not defined"};
}

std::string table_of(const CellIndex& index, const OperationResults& operation, bool color) {
  std::vector<Table::Column> columns = {{"size"}};
  for (const NamedCurve& named : operation.curves) {
    columns.push_back({named.backend});
    columns.push_back({"in a row"});
    columns.push_back({"busbw"});
  }
  const bool many = operation.curves.size() > 1;
  if (many) columns.push_back({"fastest", Table::Align::kLeft});
  Table table(columns);
  for (const double bytes : index.sizes(operation)) {
    std::vector<std::string> row = {format_bytes(bytes)};
    std::map<double, std::string> timed;
    for (const NamedCurve& named : operation.curves) {
      const Measurement* m = index.find(operation, named.backend, bytes);
      for (const std::string& cell : cells(m)) row.push_back(cell);
      if (m && is_timed(*m)) timed.try_emplace(value_of(*m, metric::kMedianS), named.backend);
    }
    if (many) row.push_back(timed.size() > 1 ? timed.begin()->second : "-");  // one: no operation
    table.add(row);
  }
  return table.text(color);
}

std::string law_text(const AlphaBeta& fit) {
  const std::string latency = format_seconds(fit.latency);
  return std::isfinite(fit.bytes_per_s())
             ? fmt::format("{} + bytes / {}", latency, format_rate(fit.bytes_per_s()))
             : latency + ", and no size measured is so large that bandwidth shows";
}

std::string fit_text(const OperationResults& operation) {
  std::string text;
  for (const auto& [backend, fit] : operation.fits) {
    const std::string line =
        fmt::format("  {}: {} (fit of {} sizes, residual error {})", backend, law_text(fit),
                    fit.sizes, format_percent(fit.error.value_or(kNaN)));
    text += printable(line) + "\n";
  }
  return text;
}

std::string crossing_text(const OperationResults& operation) {
  if (!operation.crossing || operation.sweep.size() < 2) return "";
  return printable("  Fastest: " + in_words(*operation.crossing)) + "\n";
}

// The time of the gradients of one step, by backend.
std::string model_text(const ModelTime& model, bool color) {
  Table table({{"backend", Table::Align::kLeft}, {"time"}, {"95 % interval"}});
  for (const auto& [backend, time] : model.times)
    table.add({backend, format_seconds(time.seconds),
               time.interval ? format_seconds(time.interval->low) + " to " +
                                   format_seconds(time.interval->high)
                             : "-"});
  double bytes = 0;
  for (const double bucket : model.bytes) bytes += bucket;
  return "\n" +
         printable(fmt::format("Gradients of a step of {}: {} in {} bucket{}", model.model,
                               format_bytes(bytes), model.bytes.size(),
                               model.bytes.size() == 1 ? "" : "s")) +
         "\n" + table.text(color);
}

std::string overlap_text(const std::vector<Measurement>& measurements, bool color) {
  Table table({{"backend", Table::Align::kLeft},
               {"size"},
               {"all_reduce"},
               {"with products"},
               {"products"},
               {"with all_reduce"},
               {"hidden"}});
  bool any = false;
  for (const Measurement& m : measurements) {
    if (m.suite != "backend" || op_of(m) != "overlap" || has_failed(m)) continue;
    any = true;
    table.add({backend_of(m), format_bytes(number_of(m, parameter::kBytes)),
               format_seconds(value_of(m, metric::kCommAloneS)),
               format_seconds(value_of(m, metric::kCommBesideS)),
               format_seconds(value_of(m, metric::kGemmAloneS)),
               format_seconds(value_of(m, metric::kGemmBesideS)),
               format_percent(value_of(m, metric::kHiddenFraction))});
  }
  if (!any) return "";
  return "\nAn all_reduce concurrently with matrix products; hidden: of the shorter of the two\n" +
         table.text(color);
}

std::string ceilings_text(const Ceilings& c) {
  if (!std::isfinite(c.copy_one_thread) && !std::isfinite(c.loopback_tcp)) return "";
  return fmt::format(
      "This machine: memory copy {} with one thread, {} with all; loopback TCP {}.\n",
      format_rate(c.copy_one_thread), format_rate(c.copy_all_threads), format_rate(c.loopback_tcp));
}

std::string skipped_text(const std::vector<Measurement>& measurements) {
  std::string first;
  int count = 0;
  for (const Measurement& m : measurements)
    if (const std::string why = why_skipped(m); m.suite == "backend" && !why.empty())
      if (count++ == 0) first = printable(why);
  if (count == 0) return "";
  return fmt::format("Skipped: {} cell{} ({}{}).\n", count, count == 1 ? "" : "s", first,
                     count == 1 ? "" : ", ...");
}

}  // namespace

std::string render_backend(const BackendAdvice& advice,
                           const std::vector<Measurement>& measurements, bool color) {
  std::string text =
      styled(wrapped(advice.because, kTextWidth, 2), Table::Style::kBold, color) + "\n";
  for (const std::string& note : advice.notes) text += wrapped(note, kTextWidth, 2) + "\n";
  const CellIndex index(measurements);
  for (const OperationResults& operation : advice.operations) {
    text += "\n" + printable(fmt::format("{}, {}, {} rank{}", operation.op, operation.dtype,
                                         operation.devices, operation.devices == 1 ? "" : "s"));
    text +=
        "\n" + table_of(index, operation, color) + crossing_text(operation) + fit_text(operation);
  }
  for (const ModelTime& model : advice.models) text += model_text(model, color);
  text += overlap_text(measurements, color) + "\n" + ceilings_text(advice.ceilings) +
          skipped_text(measurements);
  text += wrapped(
              "Times: median of the slowest rank, a barrier before each call; \"in a row\": calls "
              "back to back. busbw: as nccl-tests counts it. Sizes: the bytes of the whole "
              "operation.",
              kTextWidth, 2) +
          "\n";
  return text;
}

}  // namespace howmany::reports
