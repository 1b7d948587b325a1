// SPDX-License-Identifier: Apache-2.0
// Measures the phases of a training step by events on the device. Host times would be wrong for a
// GPU, which runs asynchronously to the host. One thread at a time.
//
//   clock.begin();
//   { const auto scope = clock.working(); y = layer.forward(x, tape); }
//   { const auto scope = clock.exchanging(); sync.finish(loss); }
//   clock.end();
#pragma once

#include <deque>
#include <vector>

#include "core/gpu/device_event.h"

namespace howmany {

struct DeviceTimes {
  double whole = 0, work = 0, exchange = 0;  // seconds
};

class StepClock {
  struct Span {
    DeviceEvent begin, end;
    double seconds() const { return end.seconds_since(begin); }
  };
  class Scope {
   public:
    Scope(Device device, std::vector<Span>& spans) : device_(device), spans_(spans) {}
    ~Scope() { spans_.push_back({begin_, DeviceEvent(device_)}); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    const Device device_;
    std::vector<Span>& spans_;
    const DeviceEvent begin_{device_};
  };

 public:
  explicit StepClock(Device device) : device_(device) {}

  void begin();
  void end();
  // Count the work that is submitted until the scope ends. Require a step that has begun. A scope
  // of exchange_in_work() is within one of working(), which does not count it.
  [[nodiscard]] Scope working() { return {device_, steps_.back().work}; }
  [[nodiscard]] Scope exchange_in_work() { return {device_, steps_.back().in_work}; }
  [[nodiscard]] Scope exchanging() { return {device_, steps_.back().exchange}; }

  // Returns the times of the last step. On a GPU: of the step before, which needs no wait, or zeros
  // in the first step.
  DeviceTimes times() const;

 private:
  struct Step {
    Span whole;
    std::vector<Span> work, in_work, exchange;
  };

  const Device device_;
  std::deque<Step> steps_;  // the last two
};

}  // namespace howmany
