// SPDX-License-Identifier: Apache-2.0
// Renders the tables of `howmany backend`: one per operation, with sizes as rows and backends as
// columns.
#include "reports/comm/render.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>
#include <set>

#include "core/base/schema/metrics.h"
#include "core/base/schema/parameters.h"
#include "core/base/statistics.h"
#include "core/base/text/bytes.h"
#include "core/base/text/format.h"
#include "core/base/text/table.h"
#include "reports/comm/advise.h"
#include "reports/comm/command.h"
#include "reports/results/cell.h"
#include "reports/results/disturbance.h"

namespace howmany::reports {
namespace {

// With fewer calls, a quantile is close to the maximum.
constexpr double kCallsForP95 = 20, kCallsForP99 = 100;

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

// Returns the number of calls behind a quantile. With several rounds, those of one round, because
// each round has its own quantile.
double calls_of(const Measurement& m) {
  const double calls = value_of(m, "calls");
  const auto median = m.metrics.find(metric::kMedianS);
  if (std::isfinite(calls) || median == m.metrics.end() || median->second.basis == "rounds")
    return calls;
  return static_cast<double>(median->second.n);
}

// Returns the median ratio of the quantile to the median, over sizes with enough calls.
std::string tail_of(const CellIndex& index, const OperationResults& operation,
                    const NamedCurve& named, const std::string& quantile, double least_calls) {
  std::vector<double> ratios;
  for (const CurvePoint& point : named.curve) {
    const Measurement* m = index.find(operation, named.backend, point.bytes);
    if (m == nullptr || !(calls_of(*m) >= least_calls)) continue;
    const double ratio = value_of(*m, quantile + "_s") / point.seconds;
    if (std::isfinite(ratio)) ratios.push_back(ratio);
  }
  return ratios.empty() ? "" : fmt::format("{} {}x", quantile, format_ratio(median(ratios)));
}

std::string tails_text(const CellIndex& index, const OperationResults& operation) {
  std::vector<std::string> told;
  for (const NamedCurve& named : operation.curves) {
    const std::string p95 = tail_of(index, operation, named, "p95", kCallsForP95);
    const std::string p99 = tail_of(index, operation, named, "p99", kCallsForP99);
    if (p95.empty()) continue;
    told.push_back(fmt::format("{} {}{}{}", named.backend, p95, p99.empty() ? "" : ", ", p99));
  }
  if (told.empty()) return "";
  return printable(fmt::format("  Of a call over its median: {}", fmt::join(told, "; "))) + "\n";
}

std::string ceilings_text(const Ceilings& c) {
  if (!std::isfinite(c.copy_one_thread) && !std::isfinite(c.loopback_tcp)) return "";
  return fmt::format(
      "This machine: memory copy {} with one thread, {} with all; loopback TCP {}.\n",
      format_rate(c.copy_one_thread), format_rate(c.copy_all_threads), format_rate(c.loopback_tcp));
}

// Each reason includes its own time, so the reason with the most cells is shown.
std::string skipped_text(const std::vector<Measurement>& measurements) {
  constexpr size_t kMostTold = 3;
  std::map<std::string, int> cells;
  int count = 0;
  for (const Measurement& m : measurements)
    if (const std::string why = printable(why_skipped(m)); m.suite == "backend" && !why.empty())
      ++cells[why], ++count;
  if (count == 0) return "";
  std::vector<std::pair<int, std::string>> reasons;
  for (const auto& [why, times] : cells) reasons.emplace_back(times, why);
  std::ranges::stable_sort(reasons, std::greater<>(), &std::pair<int, std::string>::first);
  const std::string all = fmt::format("Skipped: {} cell{}", count, count == 1 ? "" : "s");
  if (reasons.size() == 1) return fmt::format("{}, as {}.\n", all, reasons[0].second);
  if (reasons.size() > kMostTold)
    return fmt::format("{}, for reasons such as: {} ({}).\n", all, reasons[0].second,
                       reasons[0].first);
  std::vector<std::string> told;
  for (const auto& [times, why] : reasons) told.push_back(fmt::format("{} as {}", times, why));
  return fmt::format("{}: {}.\n", all, fmt::join(told, "; "));
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
    text += "\n" + table_of(index, operation, color) + fit_text(operation) +
            tails_text(index, operation);
  }
  text += "\n" + ceilings_text(advice.ceilings) + skipped_text(measurements);
  text += wrapped(
              "Times: median of the slowest rank, a barrier before each call; \"in a row\": calls "
              "back to back. busbw: as nccl-tests counts it. Sizes: the bytes of the whole "
              "operation.",
              kTextWidth, 2) +
          "\n";
  return text;
}

}  // namespace howmany::reports
