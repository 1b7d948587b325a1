// SPDX-License-Identifier: Apache-2.0
// A library opened at run time, so that the program also starts on hosts without it. It is never
// closed, because its own threads may outlive any owner. Thread-safe after construction.
//
//   struct Cupti : SharedLibrary {
//     Cupti() : SharedLibrary("libcupti.so.13", HM_CUPTI_LIBRARY) {}
//     HM_CUPTI_CALLS(HM_LIBRARY_CALL)
//   };
//   static const Cupti cupti;
#pragma once

#include <string>

namespace howmany {

class SharedLibrary {
 public:
  // The loader searches for `name`. If that fails, `built_with` is opened: the library's path at
  // build time, or empty. Throws Error with both reasons if neither can be opened.
  explicit SharedLibrary(std::string name, const std::string& built_with = "");

  // Throws Error: "libcupti.so.13 has no cuptiGetVersion".
  template <typename Function>
  Function find(const char* symbol) const {
    return reinterpret_cast<Function>(address_of(symbol));
  }

 private:
  void* address_of(const char* symbol) const;

  std::string name_;
  void* handle_ = nullptr;
};

// Declares a member: the library's function of that name, with the type from its header.
#define HM_LIBRARY_CALL(call) decltype(&::call) call = find<decltype(&::call)>(#call);

}  // namespace howmany
