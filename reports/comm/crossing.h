// SPDX-License-Identifier: Apache-2.0
// The size above which another backend is the fastest. Values only; not tied to any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/results/curve.h"

namespace howmany::reports {

struct NamedCurve {
  std::string backend;
  Curve curve;
};

struct Crossing {
  // The fastest backend at the smallest and at the largest common size. Equal: no crossing.
  std::string below, above;
  double from = 0, to = 0;  // bytes: these sizes
  double bytes = 0;         // where the two curves cross; 0: no crossing
  // From the largest size at which `below` is surely faster (apart()) to the next at which `above`
  // is. Empty without a crossing, and if one of the two is nowhere surely faster.
  std::optional<Interval> interval = {};
  // Of a crossing: it has an interval. Without one: the backend is apart from every other at both
  // ends.
  bool certain = false;

  bool crosses() const { return below != above; }
};

// Compares the sizes that all curves have. Returns nullopt if there is none.
std::optional<Crossing> crossing_of(const std::vector<NamedCurve>& curves);
// Returns "gloo below 13.0 KiB (4 KiB to 16 KiB), local above".
std::string in_words(const Crossing& crossing);

}  // namespace howmany::reports
