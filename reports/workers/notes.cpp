// SPDX-License-Identifier: Apache-2.0
#include "reports/workers/notes.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/text/format.h"

namespace howmany::reports {

std::string percent(double share) { return format_percent(share, share < 0.0995 ? 1 : 0); }

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
