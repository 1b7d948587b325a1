// A library opened at run time, so that a program built with it still starts where it is not. It
// stays open, since threads of its own may outlive any owner. Thread-safe once made.
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
  // As `name` the loader looks for it; `built_with` is where it was when this was built, for hosts
  // whose loader does not know it, or empty. Throws Error that says of each why it was not to be
  // had.
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

// A member that is the function of that name, whose type the library's own header declares.
#define HM_LIBRARY_CALL(call) decltype(&::call) call = find<decltype(&::call)>(#call);

}  // namespace howmany
