// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/comm_names.h"

#include <stdexcept>

#include "core/base/text/names.h"
#include "core/gpu/gpu.h"
#include "parallel/comm/comm_list.h"

namespace howmany {

std::vector<std::string_view> comm_names() {
  return {
#define X(name, what, ...) #name,
      HM_COMMS(X)
#undef X
  };
}

CommTraits comm_traits(std::string_view name) {
#define X(known, what, ...) \
  if (name == #known) return __VA_ARGS__;
  HM_COMMS(X)
#undef X
  throw std::invalid_argument(unknown_name("backend", name, comm_names()));
}

std::string comm_unavailable(std::string_view name, const Place& place) {
  const CommTraits traits = comm_traits(name);
  return traits.unavailable == nullptr ? "" : traits.unavailable(place);
}

std::vector<std::string_view> thread_comm_names(int ranks) {
  std::vector<std::string_view> names = comm_names();
  std::erase_if(names, [&](std::string_view name) {
    const CommTraits traits = comm_traits(name);
    return !traits.threads || (traits.gpus && ranks > gpu::count());
  });
  return names;
}

}  // namespace howmany
