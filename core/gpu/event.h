// SPDX-License-Identifier: Apache-2.0
// Events of GPUs. An event is recorded on a device's stream and occurs once the work that was
// enqueued before it completes. Errors and thread safety are as in gpu.h.
#pragma once

#include <memory>

namespace howmany::gpu {

// Records an event (cudaEvent_t) on the device's stream. Other streams can wait for it: they then
// run after the work that was enqueued before, and do not wait for later work.
std::shared_ptr<void> record_event(int index);
void wait_for(int index, const std::shared_ptr<void>& event);  // the device's stream waits
void finish(const std::shared_ptr<void>& event);  // blocks the host until the event occurs

// An event with a time, recorded by the constructor.
class TimedEvent {
 public:
  explicit TimedEvent(int index);
  void wait() const;      // blocks the host until the event occurs
  bool occurred() const;  // true once it has occurred
  // By the device's clock. Blocks the host until both have occurred.
  double seconds_since(const TimedEvent& earlier) const;

 private:
  std::shared_ptr<void> event_;
};

}  // namespace howmany::gpu
