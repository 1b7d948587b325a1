// What a device did in a training step, by its own clock: a GPU works behind the host that asks, so
// the host's waiting tells nothing of the GPU's. One thread at a time.
//
//   clock.begin();
//   { const auto scope = clock.working(); y = layer.forward(x, tape); }
//   { const auto scope = clock.exchanging(); sync.finish(loss); }
//   clock.end();
#pragma once

#include <deque>
#include <vector>

#include "core/gpu/device_moment.h"

namespace howmany {

struct DeviceTimes {
  double whole = 0, work = 0, exchange = 0;  // seconds
};

class StepClock {
  struct Span {
    DeviceMoment begin, end;
    double seconds() const { return end.seconds_since(begin); }
  };
  class Scope {
   public:
    Scope(Device device, std::vector<Span>& spans) : device_(device), spans_(spans) {}
    ~Scope() { spans_.push_back({begin_, DeviceMoment(device_)}); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    const Device device_;
    std::vector<Span>& spans_;
    const DeviceMoment begin_{device_};
  };

 public:
  explicit StepClock(Device device) : device_(device) {}

  void begin();
  void end();
  // What is asked of the device until the scope ends, within a step.
  [[nodiscard]] Scope working() { return {device_, steps_.back().work}; }
  [[nodiscard]] Scope exchanging() { return {device_, steps_.back().exchange}; }

  // Of the last step; of a GPU, of the one before, so that nobody waits: zeros in the first.
  DeviceTimes times() const;

 private:
  struct Step {
    Span whole;
    std::vector<Span> work, exchange;
  };

  const Device device_;
  std::deque<Step> steps_;  // the last two
};

}  // namespace howmany
