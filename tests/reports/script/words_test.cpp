// SPDX-License-Identifier: Apache-2.0
#include "reports/script/words.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "core/base/error.h"

namespace howmany::reports {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

TEST(Words, AreReplacedEachTimeTheyOccur) {
  EXPECT_THAT(replaced({"{n}x{n}", "{nodes}"}, "{n}", "{n}{n}"),
              ElementsAre("{n}{n}x{n}{n}", "{nodes}"));
}

TEST(Words, ATorchrunOnEachNodeStartsThem) {
  const Words words = under_torchrun_on_nodes({"python", "t.py"}, "/v/bin/python3");
  const auto python = std::ranges::find(words, "/v/bin/python3");
  EXPECT_THAT(Words(python, words.end()),
              ElementsAre("/v/bin/python3", "-m", "torch.distributed.run", "--nnodes", kNodes,
                          "--nproc-per-node", kPerNode, "--master-addr", kHead, "--master-port",
                          kPort, "--no-python", "--", "python", "t.py"));
}

TEST(LaunchWords, TheNumberOfNodesIsLeftToBeFilledIn) {
  const Words words = {"srun", "-N", "{nodes}", "-n", "{n}", "python", "t.py"};
  const auto launch = launch_words(words);
  ASSERT_TRUE(launch);
  EXPECT_EQ(launch->swept, words);
  EXPECT_THAT(launch->plain, ElementsAre("python", "t.py"));
  EXPECT_THROW(launch_words({"srun", "-N", "2", "-n", "{n}", "python", "t.py"}), InputError);
}

TEST(LaunchWords, ATorchrunOnSeveralNodesListensThere) {
  const auto launch =
      launch_words({"torchrun", "--nnodes", "{nodes}", "--nproc-per-node", "{per_node}", "t.py"});
  ASSERT_TRUE(launch);
  EXPECT_THAT(launch->swept, ::testing::Not(::testing::Contains("--local-addr")));
}

TEST(WithNodelist, SrunThatNamesNoNodesGetsThem) {
  EXPECT_THAT(with_nodelist({"srun", "-n", "2", "t"}, {"a", "b"}),
              ElementsAre("srun", "--nodelist=a,b", "-n", "2", "t"));
  for (const Words& words : {Words{"srun", "-w", "c", "t"}, Words{"srun", "--nodelist=c", "t"},
                             Words{"mpirun", "-n", "2", "t"}, Words{"python", "t.py"}})
    EXPECT_THAT(with_nodelist(words, {"a", "b"}), ElementsAreArray(words));
}

}  // namespace
}  // namespace howmany::reports
