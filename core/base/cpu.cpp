// SPDX-License-Identifier: Apache-2.0
#include "core/base/cpu.h"

namespace howmany {

bool cpu_has_bf16() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512bf16") != 0;
#else
  return false;
#endif
}

}  // namespace howmany
