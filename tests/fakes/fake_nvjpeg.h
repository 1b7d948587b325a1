// SPDX-License-Identifier: Apache-2.0
// The interface of tests to the fake libnvjpeg (fake_nvjpeg.cpp). Both include this.
#pragma once

#include <atomic>

namespace howmany {

struct FakeNvjpeg {
  std::atomic<int> decoded = 0;  // decoded images
  std::atomic<int> states = 0;   // existing states
  std::atomic<int> misused = 0;  // calls on which nvJPEG may crash or return wrong pixels
};

}  // namespace howmany

extern "C" howmany::FakeNvjpeg* hm_fake_nvjpeg();
