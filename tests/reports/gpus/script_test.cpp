// SPDX-License-Identifier: Apache-2.0
#include "reports/script/script.h"

#include <gmock/gmock.h>

#include "reports/gpus/plan.h"
#include "reports/results/record.h"

namespace howmany::reports {
namespace {

using ::testing::ElementsAre;
using Words = std::vector<std::string>;

Script script_of(const Words& words, std::string* notice = nullptr) {
  std::string unused;
  return script_from(words, notice == nullptr ? &unused : notice);
}

TEST(Script, IsNamedAfterItsFileOrModule) {
  EXPECT_EQ(script_of({"python3.11", "/data/secret/train.py", "--x"}).name, "train.py");
  EXPECT_EQ(script_of({"python", "-m", "pkg.train", "--key=1"}).name, "pkg.train");
  EXPECT_EQ(script_of({"python", "-m", "torch.distributed.run", "a/b.py"}).name, "b.py");
  EXPECT_EQ(script_of({"torchrun", "--module", "pkg.train"}).name, "pkg.train");
  EXPECT_EQ(script_of({"/opt/bin/trainer", "{n}"}).name, "trainer");
}

TEST(Script, PutsTheCountWhereTheLaunchersNumberWas) {
  std::string notice;
  EXPECT_THAT(script_of({"torchrun", "--nproc_per_node=4", "t.py", "-n", "3"}, &notice).words,
              ElementsAre("torchrun", "--nproc_per_node={n}", "t.py", "-n", "3"));
  EXPECT_NE(notice, "");
  EXPECT_THAT(script_of({"mpirun", "-np", "8", "python", "t.py"}).words,
              ElementsAre("mpirun", "-np", "{n}", "python", "t.py"));
  EXPECT_THAT(script_of({"srun", "--ntasks=2", "python", "t.py"}).words,
              ElementsAre("srun", "--ntasks={n}", "python", "t.py"));
  EXPECT_THAT(
      script_of({"python", "-m", "torch.distributed.run", "t.py"}).words,
      ElementsAre("python", "-m", "torch.distributed.run", "--nproc-per-node", "{n}", "t.py"));
  EXPECT_THAT(script_of({"accelerate", "launch", "t.py"}).words,
              ElementsAre("accelerate", "launch", "--num_processes", "{n}", "t.py"));
}

TEST(Script, LeavesAGivenCountAndPlainPythonAsTheyAre) {
  std::string notice;
  EXPECT_THAT(script_of({"torchrun", "--nproc-per-node", "{n}", "t.py"}, &notice).words,
              ElementsAre("torchrun", "--nproc-per-node", "{n}", "t.py"));
  EXPECT_THAT(script_of({"python", "t.py", "-n", "4"}, &notice).words,
              ElementsAre("python", "t.py", "-n", "4"));
  EXPECT_EQ(notice, "");
}

TEST(Script, IsStartedByTorchrunWithTheSamePython) {
  EXPECT_THAT(under_torchrun({"/v/bin/python3", "-u", "t.py", "--x"}),
              ElementsAre("/v/bin/python3", "-m", "torch.distributed.run", "--standalone",
                          "--nproc-per-node", "{n}", "t.py", "--x"));
  const Words module = under_torchrun({"python", "-m", "pkg.train", "-m"});
  EXPECT_THAT(Words(module.end() - 3, module.end()), ElementsAre("--module", "pkg.train", "-m"));
  EXPECT_THROW(under_torchrun({"julia", "t.jl"}), InputError);
  EXPECT_THROW(under_torchrun({"python", "-O", "t.py"}), InputError);
}

TEST(Script, RefusesAPythonThatIgnoresTheHook) {
  for (const char* flag : {"-c", "-E", "-I"})
    EXPECT_THROW(script_of({"python", flag, "t.py"}), InputError) << flag;
  EXPECT_THROW(script_of({}), InputError);
}

TEST(Script, ItsWordsAreOnlyInThePlan) {
  Request request;
  request.script = script_of({"python", "t.py", "--token=SECRET", "{n}"});
  EXPECT_EQ(to_json(request).dump().find("SECRET"), std::string::npos);
}

}  // namespace
}  // namespace howmany::reports
