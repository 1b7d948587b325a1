// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "core/base/private_folder.h"
#include "parallel/comm/comm_list.h"
#include "parallel/launch/launch.h"

#if HM_HAVE_GLOO
#include "parallel/engines/gloo_rendezvous.h"
#include "tests/support/message_of.h"
#endif

namespace howmany {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// A socket on a port that the system chooses.
struct Port {
  Port() : fd(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = loopback(0);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
    number = ntohs(address.sin_port);
  }
  ~Port() { ::close(fd); }
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  int fd, number;
};

int free_port() { return Port().number; }

std::string failure_of(const Place& place, milliseconds timeout = milliseconds(300)) {
  return message_of<std::exception>([&] { connect(place, "gloo", timeout); });
}

class Connect : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::ranges::count(comm_names(), "gloo") == 0) GTEST_SKIP() << "built without gloo";
  }

  static void expect_sum(Comm& comm) {
    Tensor t = Tensor::full({10}, 1);
    comm.all_reduce(t);
    EXPECT_EQ(t.data<float>()[9], static_cast<float>(comm.size()));
  }
  // Connects ranks as threads at `rendezvous`. `first` runs before each connects.
  static void meet(
      int world, const std::string& rendezvous,
      const std::function<void(int)>& first = [](int) {}) {
    std::vector<std::jthread> ranks;
    for (int rank = 0; rank < world; ++rank)
      ranks.emplace_back([&, rank] {
        first(rank);
        const auto comm = connect({rank, world, rank, rendezvous, ""}, "gloo");
        expect_sum(*comm);
        comm->split(rank % 2)->barrier();
      });
  }
};

TEST_F(Connect, MeetsInAFolder) {
  const PrivateFolder folder;
  meet(3, "file:" + folder.path() + "/made");
}

TEST_F(Connect, MeetsAtAPort) { meet(3, fmt::format("tcp:127.0.0.1:{}", free_port())); }

#if HM_HAVE_GLOO
TEST_F(Connect, EnginesOfOneProcessMeetAtOnePort) {
  const std::string at = fmt::format("tcp:127.0.0.1:{}", free_port());
  const auto soon = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  const auto first = make_rendezvous(at, 0, soon), second = make_rendezvous(at, 0, soon);
  first->set("gloo/x", {'a'});
  EXPECT_EQ(second->get("gloo/x"), std::vector<char>{'a'});
  EXPECT_FALSE(second->has("nccl/x"));
}
#endif

TEST_F(Connect, MeetsAtAnIpv6Port) {
  const int probe = socket(AF_INET6, SOCK_STREAM, 0);
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_loopback;
  const bool works = bind(probe, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  ::close(probe);
  if (!works) GTEST_SKIP() << "no IPv6 on this machine";
  meet(2, fmt::format("tcp:[::1]:{}", free_port()));
}

TEST_F(Connect, MeetsAtAPortThatStrangersTalkTo) {
  const int port = free_port();
  meet(3, fmt::format("tcp:localhost:{}", port), [port](int rank) {
    if (rank == 0) return;
    using namespace std::string_literals;
    const std::string huge = "s\xff\xff\xff\xff\xff\xff\xff\xff"s;
    for (const std::string& words :
         {"GET / HTTP/1.1\r\n\r\n"s, huge, "s\0\0\0\1\0\0\0\1"s, ""s, "x\0\0\0\0\0\0\0\0"s}) {
      const int fd = socket(AF_INET, SOCK_STREAM, 0);
      sockaddr_in address = loopback(port);
      while (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
        std::this_thread::yield();
      (void)!::send(fd, words.data(), words.size(), MSG_NOSIGNAL);
      // Incomplete requests stay open while the ranks connect, until the process ends.
      if (words.size() > 9) ::close(fd);
    }
  });
}

TEST_F(Connect, NamesTheRankThatDoesNotCome) {
  const PrivateFolder folder;
  EXPECT_THAT(failure_of({0, 2, 0, "file:" + folder.path(), ""}),
              AllOf(HasSubstr("[connect] rank 0 of 2 (gloo): peer 1 "), HasSubstr("after 0.")));
}

TEST_F(Connect, GivesUpWhenNobodyListens) {
  const int port = free_port();
  EXPECT_THAT(failure_of({1, 2, 1, fmt::format("tcp:127.0.0.1:{}", port), ""}),
              HasSubstr(fmt::format("no process listens on 127.0.0.1:{}", port)));
}

TEST_F(Connect, SaysThatThePortIsTaken) {
  const Port taken;
  listen(taken.fd, 1);
  EXPECT_THAT(failure_of({0, 2, 0, fmt::format("tcp:127.0.0.1:{}", taken.number), ""}),
              HasSubstr("rank 0 cannot listen on"));
}

TEST_F(Connect, RefusesAFolderThatWasUsedBefore) {
  const PrivateFolder folder;
  meet(2, "file:" + folder.path());
  EXPECT_THAT(failure_of({0, 2, 0, "file:" + folder.path(), ""}), HasSubstr("already"));
}

TEST_F(Connect, RefusesWhatItCannotUse) {
  for (const char* bad : {"", "file:", "tcp:x", "tcp::1", "udp:x:1", "/tmp/x"})
    EXPECT_THAT(failure_of({0, 2, 0, bad, ""}), HasSubstr("expected file:<folder> or tcp:"));
  EXPECT_THAT(failure_of({0, 2, 0, "file:/proc/no/such", ""}), HasSubstr("No such file"));
  EXPECT_THAT(failure_of({0, 2, 0, "tcp:127.0.0.1:http", ""}), HasSubstr("127.0.0.1:http"));
  EXPECT_THAT(failure_of({2, 2, 0, "file:/tmp", ""}), HasSubstr("rank 2 of 2"));
  EXPECT_THROW(connect({}, "glue"), std::invalid_argument);
}

TEST_F(Connect, RefusesRanksOfAnotherProgram) {
  const PrivateFolder folder;
  std::vector<std::jthread> ranks;
  std::vector<std::string> told(4);
  for (int rank = 0; rank < 4; ++rank)
    ranks.emplace_back([&, rank] {
      Place place{rank, 4, rank, "file:" + folder.path() + "/made", ""};
      place.program = rank < 2 ? "01ab --mode ddp" : "01ab --mode single";
      told[static_cast<size_t>(rank)] = failure_of(place, std::chrono::seconds(30));
    });
  ranks.clear();
  for (const std::string& text : told)
    EXPECT_EQ(text,
              "[connect] ranks 2, 3 of 4 are not what rank 0 is: "
              "started with '--mode single' there, '--mode ddp' on rank 0");
}

TEST_F(Connect, NamesTheHostOfAPeer) {
  const PrivateFolder folder;
  std::vector<std::jthread> ranks;
  for (int rank = 0; rank < 2; ++rank)
    ranks.emplace_back([&, rank] {
      Place place{rank, 2, rank, "file:" + folder.path() + "/made", ""};
      place.host = fmt::format("node{}", rank);
      const auto comm = connect(place, "gloo");
      const auto group = comm->split(0, -rank);  // in reverse order
      if (rank == 1) return group->abort("out of luck");
      try {
        group->barrier();
        FAIL() << "nothing was thrown";
      } catch (const CommError& e) {
        EXPECT_THAT(e.what(), HasSubstr("rank 0 of 2 (gloo): peer 1 on node1 failed: out of luck"));
      }
    });
}

TEST_F(Connect, AloneNeedsNoRendezvous) {
  for (const std::string_view backend : comm_names()) expect_sum(*connect({}, backend));
  EXPECT_THROW(connect({0, 2, 0, "file:/tmp", ""}, "local"), std::invalid_argument);
}

}  // namespace
}  // namespace howmany
