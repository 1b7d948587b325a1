// SPDX-License-Identifier: Apache-2.0
#include "core/base/cli/renamed.h"

#include <gtest/gtest.h>

namespace howmany {
namespace {

using Words = std::vector<std::string>;

TEST(RenamedFlags, AreReplacedWithTheirValues) {
  EXPECT_EQ(with_current_names("workers", {"--as", "pytorch", "--stall=2"}),
            (Words{"--worker-type", "pytorch", "--max-wait-percent=2"}));
}

TEST(RenamedFlags, AreOnlyReplacedInTheirProgram) {
  EXPECT_EQ(with_current_names("gpus", {"--samples", "5"}), (Words{"--samples", "5"}));
  EXPECT_EQ(with_current_names("speedup_bench", {"--samples", "5"}),
            (Words{"--samples-file", "5"}));
}

TEST(RenamedFlags, KeepLongerNamesAndValues) {
  const Words words = {"--batch-per-device", "8", "--samples-per-second", "9", "batch"};
  EXPECT_EQ(with_current_names("loader_bench", words), words);
}

TEST(RenamedFlags, KeepTheCommandOfTheUser) {
  const Words words = {"--", "t.py", "--batch", "8"};
  EXPECT_EQ(with_current_names("workers", words), words);
}

TEST(RenamedFlags, PrintAWarningWithTheNewName) {
  testing::internal::CaptureStderr();
  with_current_names("howmany train", {"--batch", "8"});
  const std::string warning = testing::internal::GetCapturedStderr();
  EXPECT_NE(warning.find("--batch is deprecated"), std::string::npos) << warning;
  EXPECT_NE(warning.find("--global-batch"), std::string::npos) << warning;
}

}  // namespace
}  // namespace howmany
