// SPDX-License-Identifier: Apache-2.0
// Observes the FLOP of the operations of ops.h that a thread calls, before each is computed. It
// makes a clock of a step on a meta device, where nothing is computed. Multiply and add count as
// two. A product is an operation: one call computes the two of a backward pass. One per thread;
// thread-safe.
//
//   double flop = 0;
//   const FlopObserver observer([&](double of_call, double operations) { flop += of_call; });
//   mode->step(batch);
#pragma once

#include <functional>
#include <utility>

namespace howmany {

class FlopObserver {
 public:
  using Observe = std::function<void(double flop, double operations)>;

  explicit FlopObserver(Observe observe) : observe_(std::move(observe)) { current = &observe_; }
  ~FlopObserver() { current = nullptr; }
  FlopObserver(const FlopObserver&) = delete;
  FlopObserver& operator=(const FlopObserver&) = delete;

  static void notify(double flop, double operations) {
    if (current != nullptr) (*current)(flop, operations);
  }

 private:
  static inline thread_local const Observe* current = nullptr;
  const Observe observe_;
};

}  // namespace howmany
