// SPDX-License-Identifier: Apache-2.0
#include "benches/script/command.h"

#include <gmock/gmock.h>

#include <cstdlib>

namespace howmany::benches {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;
using ::testing::StartsWith;

TEST(ScriptCommand, ReplacesTheNumberOfDevicesInEveryWord) {
  EXPECT_THAT(words_for({"torchrun", "--nproc-per-node={n}", "{n}{n}"}, 12),
              ElementsAre("torchrun", "--nproc-per-node=12", "1212"));
  EXPECT_THROW(words_for({}, 1), std::invalid_argument);
  EXPECT_THROW(words_for({""}, 1), std::invalid_argument);
}

TEST(ScriptEnd, IsTheLastExceptionOfARank) {
  ProcessResult ended;
  ended.how = ProcessResult::How::kExited;
  ended.code = 1;
  ended.err =
      "Traceback (most recent call last):\n[rank1]: pkg.DataError: no data\n"
      "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n=====\n";
  EXPECT_EQ(end_of(ended).how, "exited with 1: pkg.DataError: no data");
  EXPECT_FALSE(end_of(ended).ok);
  ended.err =
      "train.py: error: no --lr\nW1129 07:31:15.012 88 torch/distributed/elastic/x.py:9] Sending\n"
      "Traceback (most recent call last):\n  File x\n"
      "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n=====\n";
  EXPECT_EQ(end_of(ended).how, "exited with 1: train.py: error: no --lr");
  ended.err += "  traceback : Signal 9 (SIGKILL) received by PID 12\n";
  EXPECT_EQ(end_of(ended).how, "exited with 1: a rank ended by signal 9 (SIGKILL)");
  const Raised child{1,
                     "torch.multiprocessing.spawn.ProcessRaisedException: \n\n-- Process 0 "
                     "terminated\nTraceback (most recent call last):\n  File x\nKeyError: 'y'\n"};
  EXPECT_THAT(end_of(ended, true, {child}).how, ::testing::EndsWith("KeyError: 'y'"));
  const Raised peer{1, "RuntimeError: Connection closed by peer"}, own{2, "ValueError: no data"};
  EXPECT_EQ(end_of(ended, true, {peer}).how, "exited with 1: a rank ended by signal 9 (SIGKILL)");
  EXPECT_EQ(end_of(ended, true, {peer, own}).how, "exited with 1: ValueError: no data");
  EXPECT_EQ(end_of(ended, false, {own}).how, "exited with 1");
  ended.err = "out of memory\n";
  EXPECT_EQ(end_of(ended).how, "exited with 1: out of memory");
  ended.how = ProcessResult::How::kTimedOut;
  ended.seconds = 9;
  EXPECT_EQ(end_of(ended).how, "stopped after 9 s without a result: out of memory");
}

class ScriptEnvironment : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS", "WANDB_MODE"})
      ::unsetenv(name);
  }
  void TearDown() override { SetUp(); }
  static std::vector<std::string> of(const std::vector<Device>& devices) {
    ScriptCommand command;
    command.words = {"python"};
    command.devices = devices;
    command.threads = 4;
    return environment_for(command, "/out");
  }
};

TEST_F(ScriptEnvironment, GivesEveryRankTheSameThreads) {
  EXPECT_THAT(of({Device::parse("cpu:0")}), Contains("OMP_NUM_THREADS=4"));
  EXPECT_THAT(of({Device::parse("cpu:0"), Device::parse("cpu:1")}), Contains("OMP_NUM_THREADS=4"));
  ::setenv("OMP_NUM_THREADS", "7", 1);
  EXPECT_THAT(of({Device::parse("cpu:0")}), Not(Contains(StartsWith("OMP_NUM_THREADS="))));
}

TEST_F(ScriptEnvironment, ShowsThoseGpusOfTheOnesThatAreVisible) {
  const std::vector<Device> second = {Device::parse("cuda:1")};
  EXPECT_THAT(of(second), Contains("CUDA_VISIBLE_DEVICES=1"));
  ::setenv("CUDA_VISIBLE_DEVICES", "5,GPU-8a", 1);
  EXPECT_THAT(of(second), Contains("CUDA_VISIBLE_DEVICES=GPU-8a"));
  EXPECT_THAT(of(second), Not(Contains(StartsWith("HOWMANY_SCRIPT_CORES="))));
}

TEST_F(ScriptEnvironment, IsShownWithoutPathsAndWithoutTheHook) {
  ScriptCommand command;
  command.words = {"python"};
  command.devices = {Device::parse("cpu:0")};
  command.threads = 4;
  EXPECT_EQ(shown_environment(command),
            "PYTHONPATH, WANDB_MODE=offline, CUDA_VISIBLE_DEVICES, OMP_NUM_THREADS=4");
  ::setenv("WANDB_MODE", "online", 1);
  command.rate = "x";
  ::setenv("PYTHONUNBUFFERED", "1", 1);
  EXPECT_EQ(shown_environment(command), "CUDA_VISIBLE_DEVICES, OMP_NUM_THREADS");
  ::unsetenv("PYTHONUNBUFFERED");
}

TEST_F(ScriptEnvironment, HidesGpusFromARunOnCpus) {
  EXPECT_THAT(of({Device::parse("cpu:0")}), Contains("CUDA_VISIBLE_DEVICES="));
  EXPECT_THAT(of({Device::parse("cpu:0")}), Contains(StartsWith("HOWMANY_SCRIPT_CORES=")));
}

}  // namespace
}  // namespace howmany::benches
