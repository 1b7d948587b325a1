// SPDX-License-Identifier: Apache-2.0
#include "core/base/error.h"

#include <new>
#include <system_error>

namespace howmany {

std::string reason_of(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr)
    return "out of memory: use a smaller model or batch, or raise ulimit -v";
  const auto* const system = dynamic_cast<const std::system_error*>(&error);
  if (system != nullptr && system->code() == std::errc::resource_unavailable_try_again)
    return fmt::format("cannot start a thread ({}): raise ulimit -u or ulimit -v", error.what());
  return error.what();
}

}  // namespace howmany
