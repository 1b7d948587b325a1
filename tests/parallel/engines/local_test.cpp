// SPDX-License-Identifier: Apache-2.0
// Guarantees of the `local` backend only.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "core/base/clock.h"
#include "parallel/launch/launch.h"
#include "tests/support/message_of.h"

namespace howmany {
namespace {

using ::testing::HasSubstr;

// Expects that both ranks of a pair fail with this text.
void expect_failure(const std::string& text, const std::function<void(Comm&)>& body) {
  launch_threads(2, [&](Comm& comm) {
    EXPECT_THAT(message_of<CommError>([&] { body(comm); }), HasSubstr(text));
  });
}

TEST(Local, TellsThatRanksCalledDifferentThings) {
  expect_failure("instead", [](Comm& comm) {
    Tensor mine = Tensor::zeros({4});
    comm.rank() == 0 ? comm.all_reduce(mine) : comm.broadcast(mine, 0);
    comm.barrier();
  });
  expect_failure("instead", [](Comm& comm) {
    Tensor mine = Tensor::zeros({4});
    comm.rank() == 0 ? comm.all_reduce(mine) : comm.barrier();
    comm.barrier();
  });
}

TEST(Local, TellsThatRanksBroughtDifferentSizes) {
  for (const bool other_dtype : {false, true})
    expect_failure("another size, dtype", [other_dtype](Comm& comm) {
      Tensor mine = comm.rank() == 0 ? Tensor::zeros({4})
                    : other_dtype    ? Tensor::zeros({4}, Dtype::i32)
                                     : Tensor::zeros({5});
      comm.all_reduce(mine);
    });
  expect_failure("another size or dtype", [](Comm& comm) {
    Tensor mine = Tensor::zeros({4 + comm.rank()});
    comm.rank() == 0 ? comm.send(mine, 1) : comm.receive(mine, 0);
  });
}

TEST(Local, TellsThatRanksNamedDifferentRoots) {
  expect_failure("another size, dtype, root", [](Comm& comm) {
    Tensor mine = Tensor::zeros({4}), all = Tensor::zeros({8});
    comm.gather(mine, all, comm.rank());
    comm.barrier();
  });
}

TEST(Local, WaitsWithoutBurningItsCore) {
  launch_threads(2, [](Comm& comm) {
    if (comm.rank() == 1) {
      Tensor end = Tensor::zeros({1});
      EXPECT_THROW(comm.receive(end, 0), CommError);
      return;
    }
    comm.set_timeout(std::chrono::milliseconds(500));
    const double before = thread_seconds();
    EXPECT_THROW(comm.barrier(), CommError);
    EXPECT_LT(thread_seconds() - before, 0.25) << "of half a second of waiting";
  });
}

// A failing rank frees its buffers while peers may copy. The address sanitizer would detect that.
TEST(Local, KeepsBuffersAliveWhileAPeerReadsThem) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 60; ++round) {
    const int world = 2 + round % 3;
    const int victim = static_cast<int>(random() % static_cast<unsigned>(world));
    const int after = static_cast<int>(random() % 6);
    EXPECT_THROW(launch_threads(world,
                                [&](Comm& comm) {
                                  for (int i = 0;; ++i) {
                                    Tensor a = Tensor::zeros({40'000}), b = Tensor::zeros({9});
                                    Work work = comm.all_reduce_async(a);
                                    if (comm.rank() == victim && i == after)
                                      throw std::domain_error("gone");
                                    work.wait();
                                    comm.broadcast(b, i % world);
                                    Tensor parts = Tensor::zeros({world * 9});
                                    comm.all_gather(b, parts);
                                  }
                                }),
                 std::domain_error);
  }
}

}  // namespace
}  // namespace howmany
