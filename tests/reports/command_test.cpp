// labels: process
// timeout: 120
#include "reports/command.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>

#include "reports/bench_file.h"
#include "reports/json.h"
#include "reports/process.h"
#include "reports/record.h"
#include "tests/reports/folder.h"

namespace howmany {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// `howmany` with programs that imitate the bench, see fake_bench.py.
class Command : public ::testing::Test {
 protected:
  Command() {
    const std::string fake =
        std::string(std::getenv("HOWMANY_SOURCE")) + "/tests/reports/fake_bench.py";
    std::filesystem::create_directory(folder_ / "bin");
    for (const char* name : {"speedup_bench", "howmany-devices", "howmany-train"}) {
      std::filesystem::create_symlink(fake, folder_ / "bin/" + name);
    }
    set("HOWMANY_BENCH_DIR", folder_ / "bin");
    set("FAKE_LOG", folder_ / "log");
  }
  ~Command() override {
    for (const std::string& name : set_) ::unsetenv(name.c_str());
  }

  void set(const std::string& name, const std::string& value) {
    ::setenv(name.c_str(), value.c_str(), 1);
    set_.push_back(name);
  }

  Ended howmany(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), std::string(std::getenv("HOWMANY_BIN")) + "/howmany");
    howmany::Command command;
    command.argv = std::move(arguments);
    command.timeout_seconds = 90;
    return run_command(command);
  }

  // A small measurement into out(): one round, single and ddp on 1 and 2 devices.
  Ended gpus(std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments = {"gpus",     "--devices", "cpu:0,cpu:1", "--mode", "ddp",
                                          "--rounds", "1",         "--out",       out()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return howmany(arguments);
  }

  std::string out() const { return folder_ / "out"; }
  size_t runs_started() const {
    const std::string log = contents(folder_ / "log");
    return static_cast<size_t>(std::count(log.begin(), log.end(), '\n'));
  }

  TemporaryFolder folder_;
  std::vector<std::string> set_;
};

TEST_F(Command, AnswersFirstAndLeavesEveryFile) {
  const Ended ended = gpus();
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out,
              StartsWith("Ask for 2 CPU devices, because 2 with ddp over gloo train mlp 1.9"));
  EXPECT_EQ(read_bench(out() + "/speedup.json").rows.size(), 3u);
  EXPECT_EQ(read_samples(out() + "/speedup.samples.jsonl").size(), 3u);
  EXPECT_EQ(read_summary(out() + "/summary.json").measurements.size(), 3u);
  EXPECT_THAT(contents(out() + "/summary.csv"), StartsWith("suite,case,"));
  EXPECT_THAT(ended.out, HasSubstr("Files: " + out()));
}

TEST_F(Command, KeepsTheOthersWhenOneMeasurementDies) {
  set("FAKE_FAIL", R"({"ddp@2": "exit"})");
  const Ended ended = gpus();
  EXPECT_EQ(ended.code, 3);
  EXPECT_THAT(ended.out, HasSubstr("Failed: ddp over gloo on 2 CPU devices: exited with 3: [gloo] "
                                   "peer 1 closed"));
  EXPECT_EQ(read_samples(out() + "/speedup.samples.jsonl").size(), 2u);
  EXPECT_EQ(read_bench(out() + "/speedup.json").rows.size(), 3u);
}

TEST_F(Command, PrintsOnlyTheSummaryWithJson) {
  const Ended ended = gpus({"--json", "--quiet"});
  EXPECT_EQ(ended.code, 0);
  EXPECT_EQ(ended.err, "");
  const Summary summary = summary_from_json(parse_json(ended.out, "stdout"), "stdout");
  EXPECT_EQ(summary.answer["gpus"]["recommended"], 2);
  EXPECT_EQ(ended.out, contents(out() + "/summary.json"));
}

TEST_F(Command, RefusesUnknownNamesBeforeMeasuring) {
  const Ended ended = howmany({"gpus", "--model", "mpl", "--out", out()});
  EXPECT_EQ(ended.code, 2);
  EXPECT_EQ(
      ended.err,
      "howmany: unknown model \"mpl\"; did you mean mlp? (there are simple_net, mlp, resnet18)\n");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "log"));
  EXPECT_FALSE(std::filesystem::exists(out()));
}

TEST_F(Command, ReportsAgainFromTheFiles) {
  const Ended measured = gpus();
  const Ended again = howmany({"report", out()});
  EXPECT_EQ(again.code, 0);
  EXPECT_EQ(again.out, measured.out);
  EXPECT_EQ(howmany({"report", out() + "/summary.json"}).out, measured.out);
}

}  // namespace
}  // namespace howmany
