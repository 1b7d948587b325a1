// SPDX-License-Identifier: Apache-2.0
// Renders tables of copies by size, for host memory and each GPU, and a line for every other
// measurement.
#include "reports/transfer/render.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <set>

#include "core/base/schema/metrics.h"
#include "core/base/schema/parameters.h"
#include "core/base/text/bytes.h"
#include "core/base/text/format.h"
#include "core/base/text/table.h"
#include "reports/results/cell.h"
#include "reports/transfer/advise.h"

namespace howmany::reports {
namespace {

std::string copies_table(const TransferAdvice& advice, bool color) {
  std::vector<Table::Column> columns = {{"size"}};
  std::set<double> sizes;
  for (const CopyCurve& c : advice.copies) {
    columns.push_back({fmt::format("{} thread{}", c.threads, c.threads == 1 ? "" : "s")});
    columns.push_back({"rate"});
    for (const CurvePoint& p : c.curve) sizes.insert(p.bytes);
  }
  Table table(columns);
  for (const double bytes : sizes) {
    std::vector<std::string> row = {format_bytes(bytes)};
    for (const CopyCurve& c : advice.copies) {
      const auto p = std::ranges::find(c.curve, bytes, &CurvePoint::bytes);
      row.push_back(p == c.curve.end() ? "-" : format_seconds(p->seconds));
      row.push_back(p == c.curve.end() ? "-" : format_rate(bytes / p->seconds));
    }
    table.add(row);
  }
  return table.text(color);
}

struct Shown {
  const char *title, *kind, *memory, *how;
};
constexpr std::array<Shown, 6> kShown = {{
    {"to: pageable", "host_to_device", "pageable", "sync"},
    {"pinned", "host_to_device", "pinned", "sync"},
    {"async", "host_to_device", "pinned", "async"},
    {"from: pageable", "device_to_host", "pageable", "sync"},
    {"pinned", "device_to_host", "pinned", "sync"},
    {"async", "device_to_host", "pinned", "async"},
}};

bool is_shown(const Measurement& m) {
  return is_of_gpu(m) && !m.parameters.contains(parameter::kBeside) &&
         std::ranges::any_of(kShown, [&](const Shown& s) {
           return is_timed_transfer(m, s.kind) && parameter_of(m, parameter::kMemory) == s.memory &&
                  parameter_of(m, parameter::kHow) == s.how;
         });
}

// The times at one size, and for each direction the rate of the fastest.
std::vector<std::string> gpu_row(const std::array<const Curve*, 6>& curves, double bytes) {
  std::vector<std::string> row = {format_bytes(bytes)};
  double best = 0;
  for (size_t i = 0; i < curves.size(); ++i) {
    const CurvePoint* p = at_size(*curves[i], bytes);
    row.push_back(p ? format_seconds(p->seconds) : "-");
    if (p) best = std::max(best, bytes / p->seconds);
    if (i % 3 != 2) continue;
    row.push_back(best > 0 ? format_rate(best) : "-");
    best = 0;
  }
  return row;
}

std::string gpu_table(const GpuCopies& copies, const std::string& gpu, bool color) {
  std::vector<Table::Column> columns = {{"size"}};
  std::array<const Curve*, 6> curves{};
  std::set<double> sizes;
  for (size_t i = 0; i < kShown.size(); ++i) {
    const Shown& s = kShown[i];
    curves[i] = &copies.curve(s.kind, {{"device", gpu}, {"memory", s.memory}, {"how", s.how}});
    for (const CurvePoint& p : *curves[i]) sizes.insert(p.bytes);
    columns.push_back({s.title});
    if (i % 3 == 2) columns.push_back({"rate"});
  }
  Table table(columns);
  for (const double bytes : sizes) table.add(gpu_row(curves, bytes));
  return sizes.empty() ? "" : table.text(color);
}

std::string gpu_tables(const GpuCopies& copies, bool color) {
  std::string text;
  for (const std::string& gpu : copies.devices)
    if (const std::string table = gpu_table(copies, gpu, color); !table.empty())
      text += fmt::format("\nCopies to and from {} (median)\n{}", printable(gpu), table);
  if (text.empty()) return text;
  return text +
         wrapped(
             "Times: pageable and pinned memory, one copy until it has arrived, by the host's "
             "clock; async: pinned, asked for back to back, one of them by the GPU's clock. Rate: "
             "of the fastest.",
             kTextWidth, 2) +
         "\n";
}

// The largest size of each kind of copy.
std::string rates_table(const GpuCopies& copies, bool color) {
  if (copies.devices.empty()) return "";
  Table table({{"copies", Table::Align::kLeft},
               {"pageable"},
               {"pinned"},
               {"async"},
               {"registered"},
               {"write-combined"},
               {"both ways"},
               {"latency"},
               {"latency up to"}});
  for (const std::string& gpu : copies.devices)
    for (const char* kind : {kToDevice, kFromDevice}) {
      const DirectionRates r = rates_of(copies, gpu, kind);
      std::vector<std::string> row = {(kind == kToDevice ? "to " : "from ") + gpu};
      for (const double rate :
           {r.pageable, r.pinned, r.pinned_async, r.registered, r.write_combined, r.both_ways})
        row.push_back(format_rate(rate));
      row.push_back(format_seconds(r.latency_s));
      row.push_back(std::isfinite(r.latency_below) ? format_bytes(r.latency_below) : "-");
      table.add(row);
    }
  return "\nRates of GPUs, each at its largest size\n" + table.text(color);
}

// The time that pinning a batch saves in each step.
std::string saving(const StepTime& s) {
  const auto pageable = s.parts.find("batch_in"), pinned = s.parts.find("batch_in_pinned");
  if (pageable == s.parts.end() || pinned == s.parts.end()) return "-";
  if (within_noise(pageable->second, pinned->second)) return "within noise";
  return format_seconds(std::max(0.0, pageable->second.seconds - pinned->second.seconds));
}

std::string steps_table(const std::vector<StepTime>& steps, bool color) {
  if (steps.empty()) return "";
  constexpr auto kLeft = Table::Align::kLeft;
  Table table({{"model", kLeft},
               {"device", kLeft},
               {"batch"},
               {"batch in"},
               {"pinned"},
               {"pinning saves"},
               {"loss out"},
               {"whole step"}});
  for (const StepTime& s : steps)
    table.add({s.model, s.device.empty() ? "cpu:0" : s.device, std::to_string(s.batch),
               format_seconds(s.seconds("batch_in")), format_seconds(s.seconds("batch_in_pinned")),
               saving(s), format_seconds(s.seconds("loss_out")),
               format_seconds(s.seconds("whole"))});
  return "\nOne training step\n" + table.text(color);
}

// Values of these parameters are clear without the name.
bool needs_no_key(const std::string& key) {
  return key == "device" || key == "how" || key == "memory";
}

std::string what_of(const Measurement& m) {
  std::string what = m.name;
  for (const auto& [key, value] : m.parameters)
    what += key == "bytes"      ? ", " + format_bytes(std::strtod(value.c_str(), nullptr))
            : needs_no_key(key) ? ", " + value
                                : fmt::format(", {} {}", key, value);
  return what;
}

// One line for each measurement that is not in the tables by size, including skipped ones.
std::string others_table(const std::vector<Measurement>& measurements, bool color) {
  constexpr auto kLeft = Table::Align::kLeft;
  Table table({{"what", kLeft}, {"time"}, {"rate"}, {"", kLeft}});
  for (const Measurement& m : measurements) {
    if (m.suite != "transfer" || m.name == "copy" || is_timed_transfer(m, "step") || is_shown(m))
      continue;
    const std::string why = why_skipped(m);
    table.add({what_of(m), format_seconds(value_of(m, metric::kMedianS)),
               format_rate(value_of(m, metric::kBytesPerS)),
               has_failed(m)  ? "failed"
               : !why.empty() ? "skipped: " + why
                              : ""},
              why.empty() ? Table::Style::kPlain : Table::Style::kDim);
  }
  return table.text(color);
}

}  // namespace

std::string render_transfer(const TransferAdvice& advice,
                            const std::vector<Measurement>& measurements, bool color) {
  std::string text =
      styled(wrapped(advice.because, kTextWidth, 2), Table::Style::kBold, color) + "\n";
  for (const std::string& note : advice.notes) text += wrapped(note, kTextWidth, 2) + "\n";
  text += gpu_tables(advice.gpus, color) + rates_table(advice.gpus, color);
  if (!advice.copies.empty())
    text +=
        "\nCopies of host memory (median of the slowest thread)\n" + copies_table(advice, color);
  return text + steps_table(advice.steps, color) + "\n" + others_table(measurements, color);
}

}  // namespace howmany::reports
