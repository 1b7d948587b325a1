// SPDX-License-Identifier: Apache-2.0
#include "reports/workers/notes.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/text/format.h"

namespace howmany::reports {

std::string percent(double share) { return format_percent(share, share < 0.0995 ? 1 : 0); }

std::vector<std::string> left_out_of_python(const PythonCost& python) {
  std::vector<std::string> notes;
  if (python.why_not.empty()) return notes;
  notes.push_back(fmt::format("{} is left out: {}.",
                              python.measured() ? "Part of Python's own cost" : "Python's own cost",
                              without_full_stop(python.why_not)));
  return notes;
}

std::vector<std::string> python_notes(const PythonCost& python) {
  std::vector<std::string> notes = left_out_of_python(python);
  if (python.sample_s > 0)
    notes.push_back(fmt::format(
        "Measured with processes that hand over batches as PyTorch's do, each sample as slow as "
        "one worker of Python {} makes it here by {}: {}.",
        python.version, python.how, format_seconds(python.sample_s)));
  else
    notes.push_back(
        "Measured with processes that hand over batches as PyTorch's do and this program's "
        "decoder; Python adds its own cost for each sample.");
  if (python.sample_s > 0 && python.oversubscribed_s > kNoticeable * python.sample_s)
    notes.push_back(
        fmt::format("With {} of its workers a sample takes {} more of a core; measured as such.",
                    python.oversubscribed, percent(python.oversubscribed_s / python.sample_s - 1)));
  if (!python.measured()) return notes;
  std::string starts;
  for (const auto& [method, seconds] : python.start_s)
    starts += fmt::format("{}{} {}", starts.empty() ? "" : ", ", method, format_seconds(seconds));
  notes.push_back(fmt::format("Starting one worker takes Python {}: {}; measured as {}.",
                              python.version, starts, python.method));
  return notes;
}

std::vector<std::string> bound_notes(const std::vector<WorkerBound>& bounds) {
  std::vector<std::string> notes;
  int useful = 0;
  for (const WorkerBound& b : bounds)
    if (!b.hard) useful = std::max(useful, b.most);
  for (const WorkerBound& b : bounds)
    if (b.hard && b.most < useful)
      notes.push_back(
          fmt::format("No more than {} by {}: {}.", number(b.most, "worker"), b.what, b.because));
  return notes;
}

}  // namespace howmany::reports
