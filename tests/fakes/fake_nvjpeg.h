// What tests ask the fake libnvjpeg (fake_nvjpeg.cpp). Both sides include this.
#pragma once

#include <atomic>

namespace howmany {

struct FakeNvjpeg {
  std::atomic<int> decoded = 0;  // images whose pixels arrived
  std::atomic<int> states = 0;   // that there are
  std::atomic<int> misused = 0;  // calls that the real one may answer with a crash or wrong pixels
};

}  // namespace howmany

extern "C" howmany::FakeNvjpeg* hm_fake_nvjpeg();
