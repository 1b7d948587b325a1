// SPDX-License-Identifier: Apache-2.0
// labels: process
#include "parallel/launch/peer_user.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace howmany {
namespace {

constexpr uid_t kNobody = 65534;

// A listening socket on the loopback interface, and connections to it.
class PeerUser : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    listener_ = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_addr = in6addr_any;
    if (listener_ < 0 ||
        ::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
      GTEST_SKIP() << "no IPv6 on this machine";
    ::listen(listener_, 4);
    socklen_t size = sizeof address;
    getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = address.sin6_port;
  }
  void TearDown() override {
    for (const int fd : {listener_, accepted_, dialed_})
      if (fd >= 0) ::close(fd);
  }

  int dial() const {
    const int fd = socket(GetParam(), SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    v4.sin_port = port_;
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    v6.sin6_addr = in6addr_loopback;
    v6.sin6_port = port_;
    const bool is_v4 = GetParam() == AF_INET;
    const auto* const address =
        is_v4 ? reinterpret_cast<sockaddr*>(&v4) : reinterpret_cast<sockaddr*>(&v6);
    EXPECT_EQ(::connect(fd, address, is_v4 ? sizeof v4 : sizeof v6), 0);
    return fd;
  }
  void meet() {
    dialed_ = dial();
    accepted_ = ::accept(listener_, nullptr, nullptr);
  }

  int listener_ = -1, accepted_ = -1, dialed_ = -1;
  in_port_t port_ = 0;
};

TEST_P(PeerUser, IsThisUserAtBothEnds) {
  meet();
  for (const int fd : {accepted_, dialed_}) {
    EXPECT_EQ(peer_user(fd), geteuid());
    EXPECT_TRUE(is_peer_allowed(fd));
  }
}

TEST_P(PeerUser, IsUnknownIfThePeerHasClosed) {
  meet();
  ::close(dialed_);
  dialed_ = -1;
  EXPECT_EQ(peer_user(accepted_), std::nullopt);
  EXPECT_FALSE(is_peer_allowed(accepted_)) << "its data may still be in the queue";
}

TEST_P(PeerUser, IsTheUserThatConnected) {
  if (geteuid() != 0) GTEST_SKIP() << "only root may become another user";
  const pid_t child = fork();
  if (child == 0) {
    if (setuid(kNobody) != 0) _exit(1);
    dial();
    for (;;) pause();
  }
  accepted_ = ::accept(listener_, nullptr, nullptr);
  EXPECT_EQ(peer_user(accepted_), kNobody);
  EXPECT_FALSE(is_peer_allowed(accepted_));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

INSTANTIATE_TEST_SUITE_P(Tcp, PeerUser, ::testing::Values(AF_INET, AF_INET6),
                         [](const auto& family) { return family.param == AF_INET ? "v4" : "v6"; });

}  // namespace
}  // namespace howmany
