// SPDX-License-Identifier: Apache-2.0
// The clock of a rank that shares a device with other ranks of a rehearsal and takes turns with
// them.
//
// Turns. A rank holds the device while it computes. It gives the device up while it waits for other
//   ranks.
// Time. The clock runs while the rank holds the device. When a wait ends, the clock moves on to the
//   end of what the rank waited for, if that is later. So it shows the time of a rank that has a
//   device of its own.
//   A rank on a meta device computes nothing, so its clock runs by lose() alone.
// Link. A rank sends one message at a time. A message takes the first gap that is long enough.
// Source. Conservative simulation of communicating processes (Chandy and Misra 1979): each rank
//   makes its calls in a fixed order and blocks in a receive, so the order of turns changes no
//   time.
// Thread safety. at(), lose() and reserve_link() may be called from any thread. One thread per rank
// makes the other
//   calls.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "core/base/clock.h"

namespace howmany {

class Turn {
 public:
  enum class Runs { while_held, by_lose };
  // Ranks that share a device share its mutex.
  explicit Turn(std::shared_ptr<std::mutex> device, Runs runs = Runs::while_held)
      : device_(*device), kept_(std::move(device)), runs_(runs) {}

  // Holds the device while it exists. Sets the clock to `start`, in seconds. A later start is not
  // earlier than the calls so far.
  class Hold {
   public:
    explicit Hold(Turn& turn, double start = 0) : turn_(turn) { turn_.take(start); }
    ~Hold() { turn_.device_.unlock(); }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    Turn& turn_;
  };

  // Gives the device up while it exists. Does nothing if `turn` is null.
  class Pause {
   public:
    explicit Pause(Turn* turn) : turn_(turn) {
      if (turn_ != nullptr) turn_->leave();
    }
    ~Pause() {
      if (turn_ != nullptr) turn_->come_back(end_);
    }
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;
    // The clock then shows at least this time.
    void until(double end) { end_ = end; }

   private:
    Turn* const turn_;
    double end_ = 0;
  };

  double now() const { return at(Clock::now()); }  // seconds
  // Returns what the clock showed at a time at which the rank held the device.
  double at(Clock::time_point time) const;
  // Puts the clock forward: by time that a call took from the rank's computing, or that computing
  // takes. Changes nothing while the rank waits.
  void lose(double seconds);
  // Keeps the rank's link busy for `seconds` from `earliest` on, or as soon as it is free. Returns
  // the begin.
  double reserve_link(double earliest, double seconds);
  // Returns how much of the time since the start the rank waited.
  double waited() const { return waited_; }

 private:
  struct Stretch {  // in which the clock ran
    Clock::time_point begin;
    double at = 0;  // on the clock
  };

  double on_clock(Clock::time_point time) const;  // under the mutex
  void take(double start);
  void leave();
  void come_back(double end);

  std::mutex& device_;
  const std::shared_ptr<std::mutex> kept_;
  const Runs runs_;
  mutable std::mutex mutex_;  // guards what follows
  std::vector<Stretch> stretches_ = {{}};
  std::map<double, double> link_busy_;  // begin -> end, from the start on
  double left_ = 0, waited_ = 0;
};

}  // namespace howmany
