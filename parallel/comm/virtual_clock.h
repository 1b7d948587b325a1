// SPDX-License-Identifier: Apache-2.0
// The clock of a simulated rank (simulation.h), in seconds. It shows the time that the rank's work
// would take on a device of its own, and does not run while the program computes or waits.
//
// Time. charge() moves it on by a duration, wait_until() to the end of a call, if that is later.
// Link. A rank sends one message at a time. A message takes the first gap that is long enough.
// Source. Conservative simulation of communicating processes (Chandy and Misra 1979): each rank
//   makes its calls in a fixed order and blocks in a receive, so the order in which threads run
//   changes no time.
// Thread safety. All functions may be called from any thread.
#pragma once

#include <map>
#include <mutex>

namespace howmany {

class VirtualClock {
 public:
  double now() const;
  void charge(double seconds);
  void wait_until(double end);
  // Keeps the rank's link busy for `seconds` from `earliest` on, or as soon as it is free. Returns
  // the begin.
  double reserve_link(double earliest, double seconds);
  // Sets the clock. No later call begins before `time`.
  void restart(double time);

 private:
  mutable std::mutex mutex_;
  double now_ = 0;
  std::map<double, double> link_busy_;  // begin -> end
};

}  // namespace howmany
