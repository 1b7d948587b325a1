// SPDX-License-Identifier: Apache-2.0
// The interface of tests to the fake libnccl (fake_nccl.cpp). Both include this.
#pragma once

#include <atomic>

namespace howmany {

constexpr int kFakeRemoteError = 6;  // ncclRemoteError

struct FakeNccl {
  std::atomic<int> asked = 0;        // enqueued calls
  std::atomic<int> done = 0;         // completed calls
  std::atomic<int> refused = 0;      // calls on which NCCL would crash
  std::atomic<int> async_error = 0;  // ncclResult_t that every communicator reports
};

}  // namespace howmany

extern "C" howmany::FakeNccl* hm_fake_nccl();
