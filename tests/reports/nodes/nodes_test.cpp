// SPDX-License-Identifier: Apache-2.0
#include "reports/nodes/nodes.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>

#include "core/base/error.h"
#include "core/base/text/files.h"
#include "tests/support/message_of.h"

namespace howmany::reports {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
namespace fs = std::filesystem;

class FindNodes : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string path = ::testing::TempDir() + "hm_nodesXXXXXX";
    ASSERT_NE(::mkdtemp(path.data()), nullptr);
    folder_ = path;
    for (const char* const name : kVariables) ::unsetenv(name);
    for (const char* const program : {"mpirun", "srun"}) tell(program, "mpirun (Open MPI) 4.1.4");
    path_ = std::getenv("PATH");
    ::setenv("PATH", (folder_.string() + ":" + path_).c_str(), 1);
    ::setenv("SLURMD_NODENAME", "b", 1);
  }
  void TearDown() override {
    for (const char* const name : kVariables) ::unsetenv(name);
    ::setenv("PATH", path_.c_str(), 1);
    fs::remove_all(folder_);
  }

  // A program that prints its version.
  void tell(const std::string& program, const std::string& version) const {
    write_text(folder_ / program, fmt::format("#!/bin/sh\necho '{}'\n", version));
    fs::permissions(folder_ / program, fs::perms::owner_all);
  }

  std::string file(const std::string& text) const {
    write_text(folder_ / "hosts", text);
    return folder_ / "hosts";
  }

 private:
  static constexpr const char* kVariables[] = {"SLURM_JOB_ID", "SLURM_JOB_NODELIST", "PBS_NODEFILE",
                                               "LSB_HOSTS", "SLURMD_NODENAME"};
  fs::path folder_;
  std::string path_;
};

TEST_F(FindNodes, ReturnsNoneOutsideAJob) { EXPECT_EQ(find_nodes(""), Nodes{}); }

TEST_F(FindNodes, ReadsTheFirstWordsOfAHostsFile) {
  const std::string hosts = file("# ours\na slots=4\n\nc.example.org\tslots=4\na\n");
  const Nodes nodes = find_nodes(hosts);
  EXPECT_THAT(nodes.names, ElementsAre("a", "c.example.org"));
  EXPECT_EQ(nodes.launcher, "mpirun");
  EXPECT_EQ(nodes.source, hosts);
}

TEST_F(FindNodes, PutsThisHostFirst) {
  EXPECT_THAT(find_nodes(file("a\nb.example.org\nc\n")).names,
              ElementsAre("b.example.org", "a", "c"));
}

TEST_F(FindNodes, ReadsTheNodesOfPbs) {
  ::setenv("PBS_NODEFILE", file("a\na\nb\n").c_str(), 1);
  const Nodes nodes = find_nodes("");
  EXPECT_THAT(nodes.names, ElementsAre("b", "a"));
  EXPECT_EQ(nodes.source, "PBS_NODEFILE");
}

TEST_F(FindNodes, ReadsTheHostsOfLsf) {
  ::setenv("LSB_HOSTS", " a a  c", 1);
  const Nodes nodes = find_nodes("");
  EXPECT_THAT(nodes.names, ElementsAre("a", "c"));
  EXPECT_EQ(nodes.source, "LSB_HOSTS");
}

TEST_F(FindNodes, LeavesAJobToOneNodeIfItsMpirunIsAnother) {
  tell("mpirun", "Intel(R) MPI Library for Linux* OS, Version 2021.9");
  ::setenv("LSB_HOSTS", "a c", 1);
  EXPECT_EQ(find_nodes(""), Nodes{});
  EXPECT_THAT(message_of<InputError>([&] { find_nodes(file("a\nc\n")); }), HasSubstr("Open MPI"));
}

TEST_F(FindNodes, KeepsTheOrderOfSlurm) {
  // `scontrol show hostnames` of a fake Slurm.
  const fs::path scontrol = fs::path(file("")).parent_path() / "scontrol";
  write_text(scontrol, "#!/bin/sh\n[ \"$3\" = \"[a-c]\" ] && printf 'a\\nb\\nc\\n'\n");
  fs::permissions(scontrol, fs::perms::owner_all);
  ::setenv("SLURM_JOB_ID", "7", 1);
  ::setenv("SLURM_JOB_NODELIST", "[a-c]", 1);
  const Nodes nodes = find_nodes("");
  EXPECT_THAT(nodes.names, ElementsAre("a", "b", "c"));
  EXPECT_EQ(nodes.launcher, "srun");
}

TEST_F(FindNodes, RefusesWhatIsNoName) {
  for (const char* const name : {"-oProxyCommand=x", "a;b", "$(a)", "a,b", "a/b"})
    EXPECT_THAT(message_of<InputError>([&] { find_nodes(file(fmt::format("a\n{}\n", name))); }),
                HasSubstr(name));
  ::setenv("LSB_HOSTS", "a b;c", 1);
  EXPECT_THAT(message_of<InputError>([] { find_nodes(""); }), HasSubstr("b;c"));
  EXPECT_THROW(find_nodes(file("# none\n")), InputError);
  EXPECT_THROW(find_nodes(file(std::string(254, 'a'))), InputError);
}

TEST(StartOn, GivesEachNodeItsTasks) {
  const Nodes slurm{{"a", "b", "c"}, "srun", "Slurm job 7"};
  EXPECT_THAT(start_on(slurm, 2, 4), IsSupersetOf({"srun", "--nodes=2", "--ntasks=8",
                                                   "--ntasks-per-node=4", "--nodelist=a,b"}));
  const Nodes hosts{{"a", "b", "c"}, "mpirun", "hosts"};
  EXPECT_THAT(start_on(hosts, 2, 4), IsSupersetOf({"mpirun", "a:4,b:4", "8", "ppr:4:node"}));
}

}  // namespace
}  // namespace howmany::reports
