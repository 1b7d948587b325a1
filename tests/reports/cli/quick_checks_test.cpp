// SPDX-License-Identifier: Apache-2.0
#include "reports/cli/quick_checks.h"

#include <gmock/gmock.h>

#include <limits>
#include <set>

namespace howmany::reports {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

Part part(const std::string& name, bool usable = true) {
  return {.name = name, .usable = usable, .why = "", .over_ranks = false};
}

TEST(QuickChecks, LossesAreThoseOfEachEpoch) {
  EXPECT_THAT(read_losses("Epoch 1, Loss: 0.5\nnote\nEpoch 2, Loss: 0.25\n"),
              ElementsAre(0.5, 0.25));
  EXPECT_THAT(read_losses("Loss: 1\nEpoch 1\n\xff, Loss: 2"), IsEmpty());
}

TEST(QuickChecks, LossesDifferIfOneIsFarAbsentOrNotFinite) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(are_same_losses({2.0, 1.0}, {2.001, 1.0}));
  EXPECT_FALSE(are_same_losses({2.0, 1.0}, {2.1, 1.0}));
  EXPECT_FALSE(are_same_losses({2.0, 1.0}, {2.0}));
  EXPECT_FALSE(are_same_losses({}, {}));
  EXPECT_FALSE(are_same_losses({nan}, {nan}));
}

TEST(QuickChecks, AnUnusableBackendHasNoChecks) {
  Machine machine;
  machine.comms = {part("local"), part("gloo", false)};
  for (const QuickCheck& check : quick_checks(machine))
    EXPECT_THAT(check.arguments, Not(Contains("gloo"))) << check.what;
}

TEST(QuickChecks, GpusComputeIfThereAreSome) {
  Machine machine;
  machine.comms = {part("local"), part("nccl")};
  machine.cuda = {"cuda:0", "cuda:1"};
  std::set<std::string> devices;
  for (const QuickCheck& check : quick_checks(machine))
    devices.insert(check.arguments.begin(), check.arguments.end());
  EXPECT_THAT(devices, Contains("cuda:0"));
  EXPECT_THAT(devices, Contains("cuda:0,cuda:1"));
}

}  // namespace
}  // namespace howmany::reports
