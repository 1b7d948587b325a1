// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "core/host/copy.h"

namespace howmany {

void copy_host(void* to, const void* from, size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

}  // namespace howmany
