#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "parallel/launch.h"

namespace howmany {
namespace {

using ::testing::HasSubstr;

using Variables = std::map<std::string, std::string>;

class PlaceFromEnvironment : public ::testing::Test {
 protected:
  void SetUp() override { clear(); }
  void TearDown() override { clear(); }

  static Place with(const Variables& variables) {
    clear();
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
    return place_from_environment();
  }
  static std::string refusal(const Variables& variables) {
    try {
      with(variables);
    } catch (const std::invalid_argument& e) {
      return e.what();
    }
    return "not refused";
  }

 private:
  static void clear() {
    for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT",
                             "HOWMANY_RENDEZVOUS", "TORCHELASTIC_USE_AGENT_STORE",
                             "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"})
      unsetenv(name);
  }
};

TEST_F(PlaceFromEnvironment, IsAloneWithoutVariables) {
  const Place place = with({});
  EXPECT_EQ(place.rank, 0);
  EXPECT_EQ(place.world, 1);
  EXPECT_EQ(place.rendezvous, "");
  EXPECT_EQ(place.launcher, "alone");
}

TEST_F(PlaceFromEnvironment, ReadsTorchrun) {
  const Place place = with({{"RANK", "5"},
                            {"WORLD_SIZE", "8"},
                            {"LOCAL_RANK", "1"},
                            {"MASTER_ADDR", "node0"},
                            {"MASTER_PORT", "29500"}});
  EXPECT_EQ(place.rank, 5);
  EXPECT_EQ(place.world, 8);
  EXPECT_EQ(place.local_rank, 1);
  EXPECT_EQ(place.rendezvous, "tcp:node0:29500");
  EXPECT_EQ(place.launcher, "torchrun");
}

TEST_F(PlaceFromEnvironment, LeavesThePortOfTorchrunsAgentAlone) {
  EXPECT_EQ(with({{"RANK", "0"},
                  {"WORLD_SIZE", "2"},
                  {"MASTER_ADDR", "node0"},
                  {"MASTER_PORT", "29500"},
                  {"TORCHELASTIC_USE_AGENT_STORE", "True"}})
                .rendezvous,
            "tcp:node0:29501");
}

TEST_F(PlaceFromEnvironment, PrefersOurOwnRendezvous) {
  const Place place = with({{"RANK", "1"},
                            {"WORLD_SIZE", "2"},
                            {"MASTER_ADDR", "node0"},
                            {"MASTER_PORT", "29500"},
                            {"HOWMANY_RENDEZVOUS", "file:/tmp/x"}});
  EXPECT_EQ(place.rendezvous, "file:/tmp/x");
  EXPECT_EQ(place.launcher, "howmany");
  EXPECT_EQ(place.local_rank, 1) << "one machine, unless told";
}

TEST_F(PlaceFromEnvironment, RefusesHalfALaunch) {
  EXPECT_THAT(refusal({{"RANK", "1"}}), HasSubstr("RANK is set, but WORLD_SIZE is not"));
  EXPECT_THAT(refusal({{"WORLD_SIZE", "2"}}), HasSubstr("WORLD_SIZE is set, but RANK is not"));
  EXPECT_THAT(refusal({{"RANK", "0"}, {"WORLD_SIZE", "2"}}), HasSubstr("MASTER_ADDR"));
  EXPECT_THAT(refusal({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "node0"}}),
              HasSubstr("MASTER_PORT"));
}

TEST_F(PlaceFromEnvironment, RefusesNonsense) {
  EXPECT_THAT(refusal({{"RANK", "2"}, {"WORLD_SIZE", "2"}}), HasSubstr("RANK=2 but WORLD_SIZE=2"));
  for (const char* bad : {"", "-1", "two", "1x", " 1", "99999999999999999999"}) {
    EXPECT_THAT(refusal({{"RANK", bad}, {"WORLD_SIZE", "4"}}),
                HasSubstr(fmt::format("RANK='{}'", bad)));
  }
  EXPECT_THAT(refusal({{"RANK", "0"}, {"WORLD_SIZE", "0"}}), HasSubstr("WORLD_SIZE='0'"));
  EXPECT_THAT(
      refusal(
          {{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "node0"}, {"MASTER_PORT", "70000"}}),
      HasSubstr("MASTER_PORT='70000'"));
}

TEST_F(PlaceFromEnvironment, RefusesTasksThatEachBelieveToBeAlone) {
  EXPECT_THAT(refusal({{"OMPI_COMM_WORLD_SIZE", "4"}}), HasSubstr("mpirun started 4 tasks"));
  EXPECT_THAT(refusal({{"SLURM_STEP_NUM_TASKS", "2"}}), HasSubstr("RANK=$SLURM_PROCID"));
  EXPECT_EQ(with({{"SLURM_STEP_NUM_TASKS", "1"}}).world, 1);
}

}  // namespace
}  // namespace howmany
