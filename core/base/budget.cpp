// SPDX-License-Identifier: Apache-2.0
#include "core/base/budget.h"

#include <algorithm>
#include <limits>

#include "core/base/clock.h"

namespace howmany {

Budget::Budget(double seconds, std::function<double()> now)
    : seconds_(seconds), now_(std::move(now)) {
  if (!now_) now_ = [start = Clock::now()] { return seconds_since(start); };
}

double Budget::left() const {
  if (!limited()) return std::numeric_limits<double>::infinity();
  return std::max(0.0, seconds_ - now_());
}

double Budget::share(double weight, double weights, double reserved) const {
  return std::max(0.0, left() - reserved) * (weight / weights);
}

}  // namespace howmany
