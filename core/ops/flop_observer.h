// SPDX-License-Identifier: Apache-2.0
// Observes the FLOP of the operations of ops.h that a thread calls, before each is computed. It
// makes a clock of a step on a meta device, where nothing is computed. Multiply and add count as
// two. One per thread; thread-safe.
//
//   double flop = 0;
//   const FlopObserver observer([&](double of_operation) { flop += of_operation; });
//   mode->step(batch);
#pragma once

#include <functional>
#include <utility>

namespace howmany {

class FlopObserver {
 public:
  explicit FlopObserver(std::function<void(double)> observe) : observe_(std::move(observe)) {
    current = &observe_;
  }
  ~FlopObserver() { current = nullptr; }
  FlopObserver(const FlopObserver&) = delete;
  FlopObserver& operator=(const FlopObserver&) = delete;

  static void notify(double flop) {
    if (current != nullptr) (*current)(flop);
  }

 private:
  static inline thread_local const std::function<void(double)>* current = nullptr;
  const std::function<void(double)> observe_;
};

}  // namespace howmany
