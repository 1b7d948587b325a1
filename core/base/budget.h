// SPDX-License-Identifier: Apache-2.0
// The time budget of a measurement (--time-budget), and the only rule that divides it.
//
// Share. A run gets the time that is left, divided among the runs that are left.
// First round. A caller runs each case once before it asks fits(), so a short budget still gives
//   one figure of each case.
// End. A run that does not fit is not started.
// Thread safety. Const calls from any thread.
//
//   Budget budget(60);
//   for (size_t i = 0; i < runs.size(); ++i) {
//     if (!budget.fits(cost_of(runs[i]))) break;
//     measure(runs[i], budget.share(1, runs.size() - i));
//   }
#pragma once

#include <functional>

namespace howmany {

class Budget {
 public:
  // `seconds`: 0 is no limit. `now` returns seconds since the start; the default is a steady clock
  // that starts here.
  explicit Budget(double seconds, std::function<double()> now = {});

  bool limited() const { return seconds_ > 0; }
  double elapsed() const { return now_(); }
  double left() const;  // seconds, not negative; infinite if there is no limit
  bool fits(double seconds) const { return seconds <= left(); }
  // Returns the part `weight` of `weights` of the time left, after `reserved` seconds for untimed
  // work. Infinite if there is no limit, and 0 if nothing is left.
  double share(double weight, double weights, double reserved = 0) const;

 private:
  double seconds_;
  std::function<double()> now_;
};

}  // namespace howmany
