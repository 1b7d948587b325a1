// What tests tell the fake libcupti (fake_cupti.cpp) and ask it. Both sides include this.
#pragma once

#include <cstddef>

struct FakeCupti {
  // Told.
  bool other_tool = false;     // has the only subscription
  bool refuse_enable = false;  // as where the rights are missing
  bool calls_cuda = true;      // some thread leaves a call to CUDA when callbacks are wanted
  bool hand_out_late = false;  // keeps the buffers of a flush until the next
  size_t dropped = 0;          // records, told once
  // Asked.
  int subscribed = 0, finalized = 0, kinds_enabled = 0;
  int runtime_calls = 0, driver_calls = 0;                 // whose records were asked for
  int buffers_out = 0;                                     // requested and not completed
  bool forced = false;                                     // the last flush
  void (*add)(const void* record, size_t size) = nullptr;  // for the next flush
};

extern "C" FakeCupti* hm_fake_cupti();
