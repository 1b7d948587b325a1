// SPDX-License-Identifier: Apache-2.0
// A library for LD_PRELOAD: bind() to all interfaces becomes bind() to the loopback interface.
// Open MPI 4.1's mpirun and torchrun's stores listen on all interfaces, and no parameter changes
// that.
#include <dlfcn.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdlib>
#include <cstring>

namespace {

// The children of the launcher, which are the ranks, do not need the library. It is the first in
// the list.
[[gnu::constructor]] void leave_environment() {
  const char* const list = std::getenv("LD_PRELOAD");
  const char* const rest = list == nullptr ? nullptr : std::strchr(list, ':');
  if (rest != nullptr)
    setenv("LD_PRELOAD", rest + 1, 1);
  else
    unsetenv("LD_PRELOAD");
}

}  // namespace

extern "C" [[gnu::visibility("default")]] int bind(int fd, const sockaddr* address,
                                                   socklen_t size) noexcept {
  using Bind = int (*)(int, const sockaddr*, socklen_t);
  static const Bind next = reinterpret_cast<Bind>(dlsym(RTLD_NEXT, "bind"));
  sockaddr_storage copy{};
  if (address == nullptr || size > sizeof copy) return next(fd, address, size);
  std::memcpy(&copy, address, size);
  auto* const v4 = reinterpret_cast<sockaddr_in*>(&copy);
  auto* const v6 = reinterpret_cast<sockaddr_in6*>(&copy);
  if (copy.ss_family == AF_INET && v4->sin_addr.s_addr == htonl(INADDR_ANY))
    v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (copy.ss_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&v6->sin6_addr)) {
    int only_v6 = 1;
    socklen_t length = sizeof only_v6;
    getsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only_v6, &length);
    v6->sin6_addr = in6addr_loopback;
    if (only_v6 == 0) {  // peers connect to 127.0.0.1
      constexpr unsigned char kMapped[16] = {0, 0, 0,    0,    0,   0, 0, 0,
                                             0, 0, 0xff, 0xff, 127, 0, 0, 1};
      std::memcpy(&v6->sin6_addr, kMapped, sizeof kMapped);
    }
  }
  return next(fd, reinterpret_cast<const sockaddr*>(&copy), size);
}
