// SPDX-License-Identifier: Apache-2.0
// labels: slow mpi process
// timeout: 900
// Messages of more than 2^31 bytes: counts and offsets do not fit into an int. Requires
// HOWMANY_BIG_TESTS=1 and 14 GB of free memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "parallel/launch/launch.h"
#include "tests/support/rank_main.h"

namespace howmany {
namespace {

constexpr int64_t kPart = (int64_t{1} << 30) + 3;  // two of them are beyond 2^31
constexpr std::chrono::minutes kPatience{5};

uint8_t value(int rank, int64_t i) { return static_cast<uint8_t>((i * 7 + rank * 3) % 11); }

Tensor filled(int rank, int64_t n) {
  Tensor t = Tensor::empty({n}, Dtype::u8);
  uint8_t* const p = t.mutable_data<uint8_t>();
  for (int64_t i = 0; i < n; ++i) p[i] = value(rank, i);
  return t;
}

// Checks both ends, the borders of the parts, and a sample of the rest.
template <typename At>
void expect_values(const Tensor& t, const char* operation, const At& at) {
  std::set<int64_t> places = {0, kPart - 1, t.numel() - 1};
  if (t.numel() > kPart) places.insert({kPart, int64_t{1} << 31});
  for (int64_t i = 0; i < t.numel(); i += 1'000'003) places.insert(i);
  for (const int64_t i : places)
    if (t.data<uint8_t>()[i] != at(i))
      FAIL() << operation << ", element " << i << ": " << +t.data<uint8_t>()[i] << " is not "
             << +at(i);
}

void check_big(Comm& comm) {
  comm.set_timeout(kPatience);
  const int rank = comm.rank();
  const auto of_every_rank = [](int64_t i) {
    return value(static_cast<int>(i / kPart), i % kPart);
  };
  {
    Tensor t = filled(rank, 2 * kPart);
    comm.all_reduce(t, ReduceOp::max);
    expect_values(t, "all_reduce", [](int64_t i) { return std::max(value(0, i), value(1, i)); });
    comm.broadcast(rank == 1 ? t = filled(1, 2 * kPart) : t, 1);
    expect_values(t, "broadcast", [](int64_t i) { return value(1, i); });
    comm.reduce(filled(rank, 2 * kPart), rank == 0 ? t : Tensor(), 0, ReduceOp::max);
    if (rank == 0)
      expect_values(t, "reduce", [](int64_t i) { return std::max(value(0, i), value(1, i)); });
    comm.broadcast(rank == 1 ? t = filled(1, 2 * kPart) : t, 1);
    if (rank == 0) comm.send(t, 1);
    if (rank == 1) comm.receive(t, 0);
    expect_values(t, "send", [](int64_t i) { return value(1, i); });
  }
  {
    Tensor all = Tensor::zeros({2 * kPart}, Dtype::u8);
    comm.all_gather(filled(rank, kPart), all);
    expect_values(all, "all_gather", of_every_rank);
    Tensor part = Tensor::zeros({kPart}, Dtype::u8);
    comm.scatter(all, part, 1);
    expect_values(part, "scatter", [&](int64_t i) { return value(rank, i); });
    comm.reduce_scatter(all, part, ReduceOp::min);
    expect_values(part, "reduce_scatter", [&](int64_t i) { return value(rank, i); });
    Tensor gathered = Tensor::zeros({rank == 0 ? 2 * kPart : 0}, Dtype::u8);
    comm.gather(part, gathered, 0);
    if (rank == 0) expect_values(gathered, "gather", of_every_rank);
    gathered = Tensor::zeros({2 * kPart}, Dtype::u8);
    comm.all_to_all(all, gathered);
    expect_values(gathered, "all_to_all", [&](int64_t i) { return value(rank, i % kPart); });
  }
}

int64_t available_memory() {
  std::ifstream in("/proc/meminfo");
  for (std::string name; in >> name;)
    if (int64_t kilobytes = 0; name == "MemAvailable:" && in >> kilobytes) return kilobytes << 10;
  return 0;
}

class BigMessages : public ::testing::TestWithParam<std::string_view> {
 protected:
  void SetUp() override {
    const char* const asked = std::getenv("HOWMANY_BIG_TESTS");
    if (asked == nullptr || std::string_view(asked) != "1")
      GTEST_SKIP() << "takes minutes and 14 GB: set HOWMANY_BIG_TESTS=1";
    if (available_memory() < int64_t{14'000'000'000}) GTEST_SKIP() << "less than 14 GB are free";
  }
};

std::vector<std::string_view> cpu_comms() {
  std::vector<std::string_view> names = comm_names();
  std::erase_if(names, [](std::string_view name) { return comm_traits(name).gpus; });
  return names;
}
INSTANTIATE_TEST_SUITE_P(All, BigMessages, ::testing::ValuesIn(cpu_comms()),
                         [](const auto& test) { return std::string(test.param); });

TEST_P(BigMessages, ArriveWhole) {
  const std::string backend(GetParam());
  if (comm_traits(backend).threads) return launch_threads(2, check_big, backend);
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  EXPECT_EQ(launch_processes({self, "rank", backend}, 2, {.mpirun = backend == "mpi"}).code, 0);
}

}  // namespace

int main_of_rank(char** arguments) {
  GTEST_FLAG_SET(throw_on_failure, true);
  check_big(*connect(place_from_environment(), arguments[1]));  // after "rank"
  return 0;
}

}  // namespace howmany

int main(int argc, char** argv) {
  return howmany::testing_support::rank_main(argc, argv, howmany::main_of_rank);
}
