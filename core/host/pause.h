// SPDX-License-Identifier: Apache-2.0
// Tells the CPU that the calling thread spins.
#pragma once

namespace howmany {

inline void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace howmany
