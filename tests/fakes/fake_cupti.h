// SPDX-License-Identifier: Apache-2.0
// The interface of tests to the fake libcupti (fake_cupti.cpp). Both include this.
#pragma once

#include <cstddef>

struct FakeCupti {
  // Set by tests.
  bool other_tool = false;     // another tool has the only subscription
  bool refuse_enable = false;  // as if permissions are missing
  bool calls_cuda = true;      // if callbacks are enabled, a thread returns from a CUDA call
  bool hand_out_late = false;  // keeps the buffers of a flush until the next
  size_t dropped = 0;          // dropped records, reported once
  // Read by tests.
  int subscribed = 0, finalized = 0, kinds_enabled = 0;
  int runtime_calls = 0, driver_calls = 0;                 // calls whose records are enabled
  int buffers_out = 0;                                     // requested and not completed
  bool forced = false;                                     // the last flush
  void (*add)(const void* record, size_t size) = nullptr;  // for the next flush
};

extern "C" FakeCupti* hm_fake_cupti();
