// SPDX-License-Identifier: Apache-2.0
// labels: process
#include "core/base/process.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "reports/results/record.h"

namespace howmany {
namespace {

using ::testing::HasSubstr;

ProcessResult shell(const std::string& script, double timeout = 0) {
  Command command;
  command.argv = {"/bin/sh", "-c", script};
  command.timeout_seconds = timeout;
  command.grace_seconds = 0.2;
  return run_command(command);
}

bool alive(int pid) { return ::kill(pid, 0) == 0; }

TEST(Process, GivesOutputAndStatus) {
  const ProcessResult ended = shell("echo out; echo err >&2; exit 7");
  EXPECT_EQ(ended.how, ProcessResult::How::kExited);
  EXPECT_EQ(ended.code, 7);
  EXPECT_EQ(ended.out, "out\n");
  EXPECT_EQ(ended.describe(), "exited with 7: err");
  EXPECT_FALSE(ended.ok());
  EXPECT_TRUE(shell("true").ok());
}

// A shell takes the last entry of a name.
TEST(Process, AVariableIsSetOnce) {
  setenv("HOWMANY_TEST_VARIABLE", "inherited", 1);
  Command command;
  command.argv = {"/usr/bin/env"};
  command.environment = {"HOWMANY_TEST_VARIABLE=own"};
  const std::string all = run_command(command).out;
  unsetenv("HOWMANY_TEST_VARIABLE");
  EXPECT_THAT(all, HasSubstr("HOWMANY_TEST_VARIABLE=own"));
  EXPECT_EQ(all.find("inherited"), std::string::npos);
}

TEST(Process, EndsTheProgramThatHasPrintedEnough) {
  std::string seen;
  Command command;
  command.argv = {"/bin/sh", "-c", "echo enough; sleep 100"};
  command.grace_seconds = 0.2;
  command.on_stdout = [&](std::string_view text) { seen += text; };
  command.is_done = [&] { return seen == "enough\n"; };
  const ProcessResult ended = run_command(command);
  EXPECT_EQ(ended.how, ProcessResult::How::kDone);
  EXPECT_TRUE(ended.ok());
  EXPECT_LT(ended.seconds, 50);
}

TEST(Process, TellsASignalAndTheLastLine) {
  const ProcessResult ended = shell("echo one >&2; printf 'two\\033[1m\\n\\n' >&2; kill -SEGV $$");
  EXPECT_EQ(ended.how, ProcessResult::How::kSignalled);
  EXPECT_EQ(ended.code, SIGSEGV);
  EXPECT_THAT(ended.describe(), HasSubstr("two[1m"));
}

TEST(Process, TakesNoBannerOfGoogleBenchmarkForTheReason) {
  const std::string banner =
      "2026-11-23T20:04:51+00:00\nRunning /opt/speedup_bench\nRun on (2 X 2000 MHz CPU s)\n"
      "CPU Caches:\n  L1 Data 32 KiB (x2)\nLoad Average: 0.1, 0.1, 0.1\n"
      "***WARNING*** Library was built as DEBUG. Timings may be affected.\n";
  ProcessResult ended;
  ended.how = ProcessResult::How::kTimedOut;
  ended.seconds = 121;
  ended.err = banner;
  EXPECT_EQ(ended.describe(), "stopped after 121 s without a result");
  ended.err = "[gloo] peer 1 closed.\n" + banner;
  EXPECT_EQ(ended.describe(), "stopped after 121 s without a result: [gloo] peer 1 closed");
}

TEST(Process, SaysWhenAProgramIsMissing) {
  Command command;
  command.argv = {"/nowhere/program"};
  const ProcessResult ended = run_command(command);
  EXPECT_EQ(ended.how, ProcessResult::How::kNotStarted);
  EXPECT_EQ(ended.describe(), "cannot be started: No such file or directory");
  EXPECT_THROW(exec_program({"/nowhere/program"}), InputError);
}

TEST(Process, EndsAHangingProgramThatIgnoresSigterm) {
  const ProcessResult ended =
      shell("trap '' TERM; echo hanging >&2; while :; do sleep 0.05; done", 0.2);
  EXPECT_EQ(ended.how, ProcessResult::How::kTimedOut);
  EXPECT_THAT(ended.describe(), HasSubstr("hanging"));
}

TEST(Process, EndsAProgramThatIsStopped) {
  Command command;
  command.argv = {"/bin/sh", "-c", "kill -STOP $$"};
  command.grace_seconds = command.stopped_seconds = 0.2;
  EXPECT_EQ(run_command(command).how, ProcessResult::How::kTimedOut);
}

TEST(Process, LeavesNoGrandchildBehind) {
  const ProcessResult ended = shell("sleep 300 & echo $!");
  const int grandchild = std::stoi(ended.out);
  EXPECT_TRUE(ended.ok());
  // It was killed before run_command returned, but init may need time to reap it.
  for (int i = 0; i < 1000 && alive(grandchild); ++i) ::usleep(10'000);
  EXPECT_FALSE(alive(grandchild));
}

TEST(Process, DoesNotWaitForAGrandchildThatHoldsThePipe) {
  EXPECT_LT(shell("sleep 300 & exit 0").seconds, 100);
}

TEST(Process, LeavesNoZombie) {
  shell("true");
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

double child_seconds() {
  rusage usage = {};
  ::getrusage(RUSAGE_CHILDREN, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec) * 1e-6;
}

// The subshell that starts the orphan exits at once. `setsid` keeps the orphan out of the group
// that run_command kills.
TEST(Process, CountsTheTimeOfOrphansAsOurs) {
  const double before = child_seconds();
  const ProcessResult ended = shell(
      "fifo=$(mktemp -u) && mkfifo $fifo\n"
      "(setsid sh -c 'while :; do :; done' & echo $! >$fifo) & read pid <$fifo; rm $fifo\n"
      "until [ $(cut -d' ' -f14 /proc/$pid/stat) -ge 20 ]; do sleep 0.01; done; kill $pid");
  EXPECT_TRUE(ended.ok()) << ended.describe();
  EXPECT_GE(child_seconds() - before, 0.15);
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "no zombie is left";
}

TEST(Process, DoesNotWaitLongForAnOrphanThatStays) {
  // Exits once the orphan has left the group that run_command kills: field 6 is its session.
  const ProcessResult ended = shell(
      "setsid sleep 300 & p=$!\n"
      "until [ \"$(cut -d' ' -f6 /proc/$p/stat)\" = $p ]; do sleep 0.01; done; echo $p");
  const int orphan = std::stoi(ended.out);
  EXPECT_TRUE(alive(orphan));
  ::kill(orphan, SIGKILL);
  EXPECT_EQ(::waitpid(orphan, nullptr, 0), orphan);
}

TEST(Process, KeepsTheEndOfALongStderrAndTheStartOfALongStdout) {
  const ProcessResult ended =
      shell("yes first | head -c 20000000; yes more | head -c 1000000 >&2; echo last >&2");
  EXPECT_EQ(ended.last_line(), "last");
  EXPECT_LE(ended.err.size(), 1u << 17);
  EXPECT_LE(ended.out.size(), (16u << 20) + (1u << 14));
}

TEST(Process, StreamsStderrWhileItRuns) {
  Command command;
  command.argv = {"/bin/sh", "-c", "printf abc >&2"};
  std::string seen;
  command.on_stderr = [&](std::string_view text) { seen += text; };
  run_command(command);
  EXPECT_EQ(seen, "abc");
}

TEST(Process, ReadsTheGivenInput) {
  const std::string text(3'000'000, 'x');  // more than a pipe holds
  EXPECT_EQ(run_command({.argv = {"/bin/sh", "-c", "wc -c"}, .input = text}).out, "3000000\n");
  EXPECT_TRUE(run_command({.argv = {"/bin/true"}, .input = text}).ok()) << "that reads none of it";
}

TEST(Process, ReadsNothingFromOurInput) { EXPECT_EQ(shell("wc -c").out, "0\n"); }

}  // namespace
}  // namespace howmany
