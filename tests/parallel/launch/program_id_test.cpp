// SPDX-License-Identifier: Apache-2.0
#include "parallel/launch/program_id.h"

#include <gmock/gmock.h>

#include <sstream>

#include "core/base/process.h"

namespace howmany {
namespace {

using testing::ElementsAre;

std::vector<std::string> arguments_of(const std::string& cmdline) {
  std::istringstream text(cmdline);
  return arguments_in(text);
}

TEST(Arguments, AreSplitAtNul) {
  EXPECT_THAT(arguments_of(std::string("mpirun\0-n\0\0", 11)), ElementsAre("mpirun", "-n", ""));
}

// Programs that set their title lose the last NUL.
TEST(Arguments, EndWithoutTheLastNul) {
  EXPECT_THAT(arguments_of(std::string("a\0b", 3)), ElementsAre("a", "b"));
  EXPECT_THAT(arguments_of("title of a process"), ElementsAre("title of a process"));
  EXPECT_TRUE(arguments_of("").empty());
}

}  // namespace
}  // namespace howmany
