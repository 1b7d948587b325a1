// SPDX-License-Identifier: Apache-2.0
#include "core/gpu/copies.h"

namespace howmany {

std::string_view name_of(HostMemory kind) {
  switch (kind) {
#define X(name, what)    \
  case HostMemory::name: \
    return #name;
    HM_HOST_MEMORIES(X)
#undef X
  }
  return "";
}

}  // namespace howmany
