// SPDX-License-Identifier: Apache-2.0
#include "reports/gpus/mode_notes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/base/schema/marks.h"
#include "core/base/text/format.h"

namespace howmany::reports {
namespace {

constexpr double kNoticeableShare = 0.02;  // of a step
constexpr double kNoticeableLag = 0.05;
constexpr double kLessMemory = 0.9;   // of another mode's memory
constexpr double kMuchMemory = 50e6;  // bytes; smaller amounts fit everywhere

std::string how(const Point& p) {
  return p.backend == "local" ? p.mode : p.mode + " over " + p.backend;
}

// Returns for example "devices wait for other stages 24 % of a step, 11 % in theory".
std::string costs(const Point& p) {
  std::vector<std::string> reasons;
  if (p.bubble > kNoticeableShare) {
    reasons.push_back(fmt::format("devices wait for other stages {} of a step, {} in theory",
                                  format_percent(p.bubble), format_percent(p.theoretical_bubble)));
  }
  const double exposed = p.exposed_seconds / p.step_seconds;
  if (exposed > kNoticeableShare) {
    reasons.push_back(
        fmt::format("{} of each step is spent waiting for communication", format_percent(exposed)));
  }
  return reasons.empty() ? "" : fmt::format(" ({})", fmt::join(reasons, "; "));
}

std::vector<const Point*> fastest_first(const std::vector<Point>& points, int devices) {
  std::vector<const Point*> rows;
  for (const Point& p : points) {
    if (p.devices == devices && p.valid) rows.push_back(&p);
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Point* a, const Point* b) {
    return a->speedup.value > b->speedup.value;
  });
  return rows;
}

void add_memory(const std::vector<const Point*>& rows, std::vector<std::string>& notes) {
  const auto less = [](const Point* a, const Point* b) { return a->peak_bytes < b->peak_bytes; };
  const Point &least = **std::min_element(rows.begin(), rows.end(), less), &first = *rows.front();
  if (!(least.peak_bytes < kLessMemory * first.peak_bytes)) return;
  if (first.peak_bytes < kMuchMemory) return;
  notes.push_back(fmt::format(
      "If memory is short: {} holds {:.2g} GB on a device, {} {:.2g} GB; choose it for a model "
      "that does not fit.",
      how(least), least.peak_bytes / 1e9, how(first), first.peak_bytes / 1e9));
}

// If rounds name different ranks, their median may not be a rank.
bool is_rank(double number) { return number == std::trunc(number) && number >= 0 && number < 1e6; }

void add_stragglers(const std::vector<const Point*>& rows, const std::string& things,
                    std::vector<std::string>& notes) {
  for (const Point* p : rows) {
    const double share = p->straggler_extra_seconds / p->step_seconds;
    if (!(share > kNoticeableLag) || !is_rank(p->straggler)) continue;
    const bool stages = p->theoretical_bubble > 0;
    notes.push_back(
        fmt::format("{}: with {} on {} rank {:.0f} works {:.3g} ms longer in a step than the "
                    "others ({}), which "
                    "wait for it{}.",
                    stages ? "Uneven stages" : "A straggler", how(*p), things, p->straggler,
                    1e3 * p->straggler_extra_seconds, format_percent(share),
                    stages ? ": its layers take longer, or its device is slower" : ""));
  }
}

void add_shortage(const std::vector<const Point*>& rows, const std::string& things,
                  std::vector<std::string>& notes) {
  const bool is_short = std::ranges::any_of(
      rows, [](const Point* p) { return std::ranges::count(p->flags, mark::kShortOfCores) > 0; });
  if (is_short)
    notes.push_back(fmt::format(
        "{} were fed by fewer cores than they are (short of cores): with one each or more, as by "
        "--cpus-per-task, they may do better.",
        things));
}

void add_comparison(const std::vector<const Point*>& rows, const std::string& things,
                    std::vector<std::string>& notes) {
  if (rows.size() < 2) return;
  std::vector<std::string> others;
  for (const Point* p : rows) {
    if (p == rows.front()) continue;
    others.push_back(fmt::format("{} {}{}", how(*p), format_ratio(p->efficiency.value), costs(*p)));
  }
  notes.push_back(fmt::format("On {} {} is the fastest way, efficiency {}{}; {}.", things,
                              how(*rows.front()), format_ratio(rows.front()->efficiency.value),
                              costs(*rows.front()), fmt::join(others, ", ")));
  add_memory(rows, notes);
}

}  // namespace

std::vector<std::string> mode_notes(const std::vector<Point>& points, int devices,
                                    const std::string& things) {
  const std::vector<const Point*> rows = fastest_first(points, devices);
  std::vector<std::string> notes;
  add_comparison(rows, things, notes);
  add_stragglers(rows, things, notes);
  add_shortage(rows, things, notes);
  return notes;
}

}  // namespace howmany::reports
