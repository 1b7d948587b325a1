// SPDX-License-Identifier: Apache-2.0
// The first failure (by time) of several threads. Thread-safe.
#pragma once

#include <exception>
#include <mutex>
#include <string>

#include "core/base/error.h"

namespace howmany {

inline std::string text_of(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& e) {
    return reason_of(e);
  } catch (...) {
    return "an exception of unknown type";
  }
}

class FirstFailure {
 public:
  void keep(const std::exception_ptr& failure) {
    const std::lock_guard lock(mutex_);
    if (!first_) first_ = failure;
  }
  std::exception_ptr get() const {
    const std::lock_guard lock(mutex_);
    return first_;
  }
  void rethrow() const {
    if (const std::exception_ptr first = get()) std::rethrow_exception(first);
  }
  void forget() {
    const std::lock_guard lock(mutex_);
    first_ = nullptr;
  }

 private:
  mutable std::mutex mutex_;
  std::exception_ptr first_;
};

}  // namespace howmany
