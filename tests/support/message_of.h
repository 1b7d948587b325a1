// SPDX-License-Identifier: Apache-2.0
// Returns the message of the exception that `body` throws. If it does not throw, the test fails.
// Thread-safe as gtest is.
//
//   EXPECT_THAT(message_of<CommError>([&] { comm.barrier(); }), HasSubstr("rank 2"));
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace howmany {

template <typename Thrown>
std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Thrown& e) {
    return e.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

}  // namespace howmany
