// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "parallel/launch/launch.h"
#include "tests/support/message_of.h"

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
    return message_of<std::invalid_argument>([&] { with(variables); });
  }

 private:
  static void clear() {
    for (const char* name : {"RANK",
                             "WORLD_SIZE",
                             "LOCAL_RANK",
                             "LOCAL_WORLD_SIZE",
                             "MASTER_ADDR",
                             "MASTER_PORT",
                             "HOWMANY_RENDEZVOUS",
                             "TORCHELASTIC_USE_AGENT_STORE",
                             "TORCHELASTIC_RUN_ID",
                             "OMPI_COMM_WORLD_SIZE",
                             "OMPI_COMM_WORLD_RANK",
                             "OMPI_COMM_WORLD_LOCAL_RANK",
                             "OMPI_COMM_WORLD_LOCAL_SIZE",
                             "OMPI_MCA_orte_hnp_uri",
                             "PMIX_NAMESPACE",
                             "PMI_SIZE",
                             "PMI_RANK",
                             "MPI_LOCALRANKID",
                             "MPI_LOCALNRANKS",
                             "SLURM_STEP_NUM_TASKS",
                             "SLURM_PROCID",
                             "SLURM_LOCALID",
                             "SLURM_NODEID",
                             "SLURM_STEP_NODELIST",
                             "SLURM_JOB_NODELIST",
                             "SLURM_JOB_ID",
                             "SLURM_STEP_ID",
                             "SLURM_STEP_TASKS_PER_NODE"})
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

const Variables kSrun = {{"SLURM_STEP_NUM_TASKS", "5"},
                         {"SLURM_PROCID", "3"},
                         {"SLURM_LOCALID", "1"},
                         {"SLURM_NODEID", "1"},
                         {"SLURM_STEP_NODELIST", "node[07-08,12]"},
                         {"SLURM_STEP_TASKS_PER_NODE", "2(x2),1"},
                         {"SLURM_JOB_ID", "41"},
                         {"SLURM_STEP_ID", "0"}};
const Variables kMpirun = {{"OMPI_COMM_WORLD_SIZE", "4"},
                           {"OMPI_COMM_WORLD_RANK", "2"},
                           {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                           {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                           {"PMIX_NAMESPACE", "1885863937"},
                           {"OMPI_MCA_orte_hnp_uri", "18.0;tcp://192.0.2.2,10.0.0.1:59397;tcp6:x"}};

Variables with_also(Variables base, const Variables& more) {
  for (const auto& [name, value] : more) base[name] = value;
  return base;
}

TEST_F(PlaceFromEnvironment, ReadsSrun) {
  const Place place = with(kSrun);
  EXPECT_EQ(place.rank, 3);
  EXPECT_EQ(place.world, 5);
  EXPECT_EQ(place.local_rank, 1);
  EXPECT_EQ(place.local_world, 2);
  EXPECT_EQ(place.launcher, "srun");
  EXPECT_THAT(place.rendezvous, ::testing::MatchesRegex("tcp:node07:2[0-9]{4}"));
  EXPECT_NE(with(with_also(kSrun, {{"SLURM_STEP_ID", "1"}})).rendezvous, place.rendezvous)
      << "steps of one job may run at once";
  EXPECT_EQ(with(with_also(kSrun, {{"MASTER_ADDR", "x"}, {"MASTER_PORT", "7"}})).rendezvous,
            "tcp:x:7");
  EXPECT_EQ(with(with_also(kSrun, {{"SLURM_NODEID", "2"}})).local_world, 1);
}

TEST_F(PlaceFromEnvironment, ReadsSrunThatSpeaksPmi) {
  const Variables pmi = {{"PMI_SIZE", "5"}, {"PMI_RANK", "3"}};
  const Place place = with(with_also(kSrun, pmi));
  EXPECT_EQ(place.launcher, "srun");
  EXPECT_EQ(place.local_rank, 1);
  EXPECT_EQ(place.rendezvous, with(kSrun).rendezvous);
  const Place inside = with(with_also(kSrun, {{"PMI_SIZE", "8"}, {"PMI_RANK", "3"}}));
  EXPECT_EQ(inside.launcher, "mpirun") << "whose daemons are Slurm tasks";
  EXPECT_EQ(inside.world, 8);
}

TEST_F(PlaceFromEnvironment, ReadsMpirun) {
  const Place place = with(with_also(kSrun, kMpirun));
  EXPECT_EQ(place.rank, 2);
  EXPECT_EQ(place.world, 4);
  EXPECT_EQ(place.local_rank, 0);
  EXPECT_EQ(place.launcher, "mpirun") << "whose daemons are Slurm tasks";
  EXPECT_THAT(place.rendezvous, ::testing::MatchesRegex("tcp:192.0.2.2:2[0-9]{4}"));
  EXPECT_THAT(with(with_also(kMpirun, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}})).rendezvous,
              HasSubstr("tcp:127.0.0.1:"));
  const Place mpich = with({{"PMI_SIZE", "2"}, {"PMI_RANK", "1"}});
  EXPECT_EQ(mpich.rank, 1);
  EXPECT_EQ(mpich.rendezvous, "") << "mpi finds out by itself";
}

TEST_F(PlaceFromEnvironment, IsAloneAsTheOnlyTask) {
  EXPECT_EQ(with({{"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_PROCID", "0"}}).launcher, "alone");
  EXPECT_EQ(with({{"OMPI_COMM_WORLD_SIZE", "1"}}).world, 1);
}

TEST_F(PlaceFromEnvironment, TellsWhatMustBeTheSameOnAllRanks) {
  const Place place = with(kSrun);
  EXPECT_THAT(place.program, ::testing::MatchesRegex("[0-9a-f]{16}.*"));
  EXPECT_NE(place.host, "");
}

TEST_F(PlaceFromEnvironment, RefusesTasksThatEachBelieveToBeAlone) {
  EXPECT_THAT(refusal({{"OMPI_COMM_WORLD_SIZE", "4"}}), HasSubstr("mpirun started 4 tasks"));
  EXPECT_THAT(refusal({{"SLURM_STEP_NUM_TASKS", "2"}}), HasSubstr("SLURM_PROCID is not set"));
  const Variables alone = {{"RANK", "0"}, {"WORLD_SIZE", "1"}};
  EXPECT_THAT(refusal(with_also(kSrun, alone)),
              HasSubstr("srun started 5 tasks, but WORLD_SIZE=1"));
  EXPECT_THAT(refusal(with_also(kMpirun, alone)), HasSubstr("mpirun started 4 tasks"));
}

TEST_F(PlaceFromEnvironment, RefusesTasksThatAreAllTheSameRank) {
  const Variables zero = {
      {"RANK", "0"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "x"}, {"MASTER_PORT", "7"}};
  EXPECT_THAT(refusal(with_also(kMpirun, zero)), HasSubstr("RANK=0, but mpirun says rank 2 of 4"));
  EXPECT_EQ(with(with_also(kMpirun, with_also(zero, {{"RANK", "2"}}))).launcher, "torchrun");
  EXPECT_EQ(with(with_also(kMpirun, with_also(zero, {{"WORLD_SIZE", "8"}}))).world, 8)
      << "a torchrun for each task";
}

}  // namespace
}  // namespace howmany
