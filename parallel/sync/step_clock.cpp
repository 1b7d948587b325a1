// SPDX-License-Identifier: Apache-2.0
#include "parallel/sync/step_clock.h"

namespace howmany {
namespace {

template <typename Spans>
double sum(const Spans& spans) {
  double seconds = 0;
  for (const auto& span : spans) seconds += span.seconds();
  return seconds;
}

}  // namespace

void StepClock::begin() {
  const DeviceEvent now(device_);
  steps_.push_back({.whole = {now, now}, .work = {}, .in_work = {}, .exchange = {}});
  if (steps_.size() > 2) steps_.pop_front();
}

void StepClock::end() { steps_.back().whole.end = DeviceEvent(device_); }

DeviceTimes StepClock::times() const {
  const bool gpu = device_.type == DeviceType::cuda;
  if (steps_.size() < (gpu ? 2 : 1)) return {};
  const Step& step = gpu ? steps_.front() : steps_.back();
  const double in_work = sum(step.in_work);
  return {step.whole.seconds(), sum(step.work) - in_work, sum(step.exchange) + in_work};
}

}  // namespace howmany
