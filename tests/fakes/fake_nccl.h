// What tests tell the fake libnccl (fake_nccl.cpp) and ask it. Both sides include this.
#pragma once

#include <atomic>

namespace howmany {

constexpr int kFakeRemoteError = 6;  // ncclRemoteError

struct FakeNccl {
  std::atomic<int> asked = 0;        // calls that stand on a stream or have stood there
  std::atomic<int> done = 0;         // of which so many moved their bytes
  std::atomic<int> refused = 0;      // that the real one would have answered with a crash
  std::atomic<int> async_error = 0;  // a ncclResult_t that every communicator has from now on
};

}  // namespace howmany

extern "C" howmany::FakeNccl* hm_fake_nccl();
