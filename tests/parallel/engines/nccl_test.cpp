// SPDX-License-Identifier: Apache-2.0
// labels: gpu process
// timeout: 300
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "core/base/private_folder.h"
#include "parallel/launch/launch.h"
#include "tests/support/comm_claims.h"
#include "tests/support/rank_main.h"

namespace howmany {
namespace {

constexpr int kNoGpus = 77;

// The main function of a rank, which is this program started again. If the ranks cannot connect for
// lack of GPUs, rank 0 writes the reason to a file.
int run_as_rank() {
  const Place place = place_from_environment();
  std::unique_ptr<Comm> comm;
  try {
    comm = connect(place, "nccl");
  } catch (const CommError& e) {
    if (place.rank == 0) std::ofstream(std::getenv("TEST_REASON")) << e.what();
    return kNoGpus;
  }
  check_everything(*comm);
  return 0;
}

class Nccl : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(All, Nccl, ::testing::Values(2, 3, 4));

TEST_P(Nccl, DoesWhatEveryCommMustDo) {
  if (std::ranges::count(comm_names(), "nccl") == 0) GTEST_SKIP() << "built without NCCL";
  const PrivateFolder folder;
  const std::string reason = folder.path() + "/reason";
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  const RankExit end =
      launch_processes({self, "rank"}, GetParam(), {.environment = {"TEST_REASON=" + reason}});
  if (end.code == kNoGpus) {
    std::ifstream in(reason);
    GTEST_SKIP() << std::string(std::istreambuf_iterator<char>(in), {});
  }
  EXPECT_EQ(end.code, 0);
}

TEST(NcclAlone, NeedsNoGpu) {
  if (std::ranges::count(comm_names(), "nccl") == 0) GTEST_SKIP() << "built without NCCL";
  const auto comm = connect({}, "nccl");
  Tensor t = Tensor::full({3}, 2);
  comm->all_reduce(t);
  EXPECT_EQ(t.data<float>()[2], 2);
}

}  // namespace

int main_of_rank(char**) {
  GTEST_FLAG_SET(throw_on_failure, true);
  return run_as_rank();
}

}  // namespace howmany

int main(int argc, char** argv) {
  return howmany::testing_support::rank_main(argc, argv, howmany::main_of_rank);
}
