// SPDX-License-Identifier: Apache-2.0
#include "core/host/shared_library.h"

#include <dlfcn.h>

#include "core/base/error.h"

namespace howmany {

SharedLibrary::SharedLibrary(std::string name, const std::string& built_with)
    : name_(std::move(name)) {
  std::string why;
  for (const std::string& file : {name_, built_with}) {
    if (file.empty()) continue;
    handle_ = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ != nullptr) return;
    why += (why.empty() ? "" : "; ") + std::string(dlerror());
  }
  throw Error(why);  // each begins with its file
}

void* SharedLibrary::address_of(const char* symbol) const {
  void* const address = dlsym(handle_, symbol);
  HM_ENSURE(address != nullptr, "{} has no {}", name_, symbol);
  return address;
}

}  // namespace howmany
