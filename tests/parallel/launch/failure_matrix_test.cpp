// SPDX-License-Identifier: Apache-2.0
// labels: kill process mpi
// timeout: 600
// Loses a rank in the middle of a step in every way, in every mode, over every backend. The others
// must end by themselves. Each reports the lost rank, its host, the operation and the elapsed time.
// No process, file or shared memory may remain.
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <thread>

#include "core/base/private_folder.h"
#include "parallel/launch/launch.h"
#include "parallel/sync/straggler.h"
#include "tests/support/files.h"
#include "tests/support/fragile.h"
#include "tests/support/rank_main.h"
#include "tests/support/training.h"

namespace howmany {
namespace {

using namespace testing_support;
using namespace std::chrono_literals;

// The first and last stages send and receive less than the others.
struct Row {
  const char* mode;
  int ranks, devices_each, victim;
  bool only_threads = false;
};
constexpr Row kRows[] = {{"ddp", 3, 1, 1},
                         {"sharded", 3, 1, 1},
                         {"pipeline:micro_batches=4", 3, 1, 0, true},
                         {"pipeline:micro_batches=4", 3, 1, 1},
                         {"pipeline:micro_batches=4", 3, 1, 2, true},
                         {"hybrid:stages=2,micro_batches=3", 4, 1, 3},
                         {"hybrid:across=model,micro_batches=2", 2, 2, 1}};

struct Loss {
  std::string backend, fault;  // "killed", "hung", "throws" or "slow"
  Row row;
  bool over_processes;
};

std::string str(const Loss& loss) {
  std::string text = fmt::format("{}_{}_{}_rank{}{}", loss.row.mode, loss.backend, loss.fault,
                                 loss.row.victim, loss.over_processes ? "" : "_of_threads");
  for (char& c : text)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return text;
}
void PrintTo(const Loss& loss, std::ostream* out) { *out << str(loss); }

// Modes of one process.
constexpr Row kAlone[] = {{"data_parallel", 1, 2, 0}, {"model:micro_batches=3", 1, 2, 0}};

// Sanitizers check threads; processes would take too long.
#ifdef HM_SANITIZED
constexpr bool kProcesses = false;
#else
constexpr bool kProcesses = true;
#endif

// Returns the cases over every backend, with ranks as processes and as threads. A thread cannot be
// killed.
std::vector<Loss> rows_with(const std::vector<std::string>& faults) {
  std::vector<Loss> all;
  for (const std::string_view name : comm_names()) {
    const CommTraits traits = comm_traits(name);
    if (traits.gpus) continue;
    for (const Row& row : kRows)
      for (const std::string& fault : faults) {
        if (traits.processes && kProcesses && !row.only_threads)
          all.push_back({std::string(name), fault, row, true});
        if (traits.threads && fault != "killed")
          all.push_back({std::string(name), fault, row, false});
      }
  }
  return all;
}

// Omits a process that is alone and hangs, because no rank waits for it.
std::vector<Loss> losses() {
  std::vector<Loss> all = rows_with({"killed", "hung", "throws"});
  for (const Row& row : kAlone) all.push_back({"local", "throws", row, false});
  return all;
}

std::vector<Loss> slow_ranks() { return rows_with({"slow"}); }

// --- the ranks ---

// The fault of the lost device, once armed.
constexpr auto kSlow = 10ms;
std::atomic<bool> armed = false;
std::function<void()> befall;
Device lost;

ModelSpec model() {
  return fragile_model(6, [](Device device) {
    if (armed && device == lost) befall();
  });
}

// The victim's last device fails.
void prepare(const Loss& loss, std::function<void()> what) {
  lost = {DeviceType::cpu, (loss.row.victim + 1) * loss.row.devices_each - 1};
  befall = std::move(what);
}

std::unique_ptr<Mode> mode_of(const Loss& loss, Comm& comm) {
  const int each = loss.row.devices_each;
  std::vector<Device> devices = cpus(loss.row.ranks * each);
  devices = {devices.begin() + comm.rank() * each, devices.begin() + (comm.rank() + 1) * each};
  return make_mode(loss.row.mode, {.model = model(), .comm = &comm, .devices = devices});
}

// Trains until a failure. Returns its text. On a busy machine a rank may be late before the fault,
// which would end the others. (Groups that split from this one keep the timeout, so it also holds
// while the mode is made.)
std::string ending(const Loss& loss, Comm& comm) {
  const auto timeout = loss.fault == "hung" ? 2s : 30s;
  comm.set_timeout(timeout);
  try {
    const auto mode = mode_of(loss, comm);
    const Batch batch = rows_of(global_batch(model(), 12, 0), mode->share());
    comm.set_timeout(30s);
    for (int step = 0;; ++step) {
      armed = step == 2 || armed;
      if (armed) comm.set_timeout(timeout);
      mode->step(batch);
    }
  } catch (const std::exception& e) {
    comm.abort(e.what());
    return e.what();
  }
}

// Trains for some steps. Returns the straggler.
std::string straggler(const Loss& loss, Comm& comm) {
  const auto mode = mode_of(loss, comm);
  const Batch batch = rows_of(global_batch(model(), 12, 0), mode->share());
  std::vector<double> own;
  armed = true;
  for (int step = 0; step < 5; ++step) {
    const auto start = std::chrono::steady_clock::now();
    mode->step(batch);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    own.push_back(took.count() - mode->report().waited_seconds);
  }
  const Straggler found = find_straggler(comm, own);
  const auto half = kSlow.count() / 2;
  return fmt::format("rank {}, {} ms or {}", found.rank, half,
                     1e3 * found.extra_seconds < half ? "less" : "more");
}

std::string outcome(const Loss& loss, Comm& comm) {
  return loss.fault == "slow" ? straggler(loss, comm) : ending(loss, comm);
}

// Writes the file atomically.
void write_down(const std::filesystem::path& file, const std::string& text) {
  std::ofstream(file.string() + ".tmp") << text;
  std::filesystem::rename(file.string() + ".tmp", file);
}

std::filesystem::path note_of(int rank) {
  return std::filesystem::path(std::getenv("TEST_FOLDER")) / fmt::format("ending{}", rank);
}

// A rank that cannot leave an MPI call reports that on stderr and exits.
std::filesystem::path words_of(int rank) { return note_of(rank).string() + ".stderr"; }

// Returns the final text of a rank, or "" while it runs.
std::string ending_of(int rank) {
  const std::string note = text_of(note_of(rank)), words = text_of(words_of(rank));
  constexpr std::string_view kBefore = "howmany: ";
  if (!note.empty() || !words.starts_with(kBefore) || !words.ends_with('\n')) return note;
  return words.substr(kBefore.size(), words.size() - kBefore.size() - 1);
}

void await_the_others(const Row& row) {
  for (int rank = 0; rank < row.ranks; ++rank)
    while (rank != row.victim && ending_of(rank).empty()) std::this_thread::sleep_for(5ms);
}

int run_rank(const std::string& name) {
  std::vector<Loss> all = losses();
  std::ranges::move(slow_ranks(), std::back_inserter(all));
  const Loss loss = *std::ranges::find(all, name, str);
  prepare(loss, [&] {
    if (loss.fault == "killed") raise(SIGKILL);
    if (loss.fault == "slow") return std::this_thread::sleep_for(kSlow);
    if (loss.fault == "hung") await_the_others(loss.row);
    throw std::runtime_error("out of luck");
  });
  const Place place = place_from_environment();
  if (loss.backend == "mpi" && std::freopen(words_of(place.rank).c_str(), "w", stderr) == nullptr)
    return 97;
  const auto comm = connect(place, loss.backend);
  write_down(note_of(comm->rank()), outcome(loss, *comm));
  return loss.fault == "slow" ? 0 : 3;
}

// --- the tests ---

int64_t entries(const char* folder) {
  return std::distance(std::filesystem::directory_iterator(folder), {});
}

bool is_mapped(const std::string& file) {
  return std::ranges::any_of(names_in("/proc"), [&](const std::string& process) {
    return text_of(std::filesystem::path(process) / "maps").find(file) != std::string::npos;
  });
}

bool eventually(const std::function<bool()>& condition) {
  for (const auto end = std::chrono::steady_clock::now() + 10s;;) {
    if (condition()) return true;  // once is enough: another program may start at any time
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(5ms);
  }
}

class EveryRow : public ::testing::TestWithParam<Loss> {
 protected:
  void SetUp() override {
    setenv("TEST_FOLDER", notes_.path().c_str(), 1);
    setenv("TMPDIR", temporary_.path().c_str(), 1);
  }
  void TearDown() override { unsetenv("TMPDIR"); }

  std::vector<std::string> outcomes() {
    return GetParam().over_processes ? outcomes_of_processes() : outcomes_of_threads();
  }
  void expect_nothing_left() const {
    EXPECT_TRUE(eventually([this] { return segments_left().empty(); }))
        << fmt::format("{}", fmt::join(segments_left(), " "));
    EXPECT_TRUE(std::filesystem::is_empty(temporary_.path())) << "files were left behind";
    EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a child was left behind";
    EXPECT_EQ(entries("/proc/self/fd"), files_) << "sockets or files are still open";
    EXPECT_EQ(entries("/proc/self/task"), threads_) << "threads still run";
  }

 private:
  std::vector<std::string> outcomes_of_processes() const {
    const Loss& loss = GetParam();
    const RankExit exit =
        launch_processes({std::filesystem::read_symlink("/proc/self/exe"), str(loss)},
                         loss.row.ranks, {.grace = 20s, .mpirun = loss.backend == "mpi"});
    EXPECT_EQ(exit.code == 0, loss.fault == "slow");
    if (loss.fault == "killed") {
      EXPECT_EQ(exit.rank, loss.row.victim);
      EXPECT_EQ(exit.signal, SIGKILL);
    }
    std::vector<std::string> endings;
    for (int rank = 0; rank < loss.row.ranks; ++rank) endings.push_back(ending_of(rank));
    return endings;
  }

  static std::vector<std::string> outcomes_of_threads() {
    const Loss& loss = GetParam();
    std::vector<std::string> endings(static_cast<size_t>(loss.row.ranks));
    std::atomic<int> survived = 0;
    armed = false;
    prepare(loss, [&] {
      if (loss.fault == "slow") return std::this_thread::sleep_for(kSlow);
      while (loss.fault == "hung" && survived < loss.row.ranks - 1) std::this_thread::yield();
      throw std::runtime_error("out of luck");
    });
    launch_threads(
        loss.row.ranks,
        [&](Comm& comm) {
          endings[static_cast<size_t>(comm.rank())] = outcome(loss, comm);
          ++survived;
        },
        loss.backend);
    return endings;
  }

  // Ignores mapped segments, which belong to other programs.
  std::vector<std::string> segments_left() const {
    std::vector<std::string> left;
    for (const std::string& segment : names_in("/dev/shm"))
      if (!segments_.contains(segment) && !is_mapped(segment)) left.push_back(segment);
    return left;
  }

  PrivateFolder notes_, temporary_;
  const std::set<std::string> segments_ = names_in("/dev/shm");
  const int64_t files_ = entries("/proc/self/fd"), threads_ = entries("/proc/self/task");
};

class EveryLoss : public EveryRow {};
class EverySlowRank : public EveryRow {};
INSTANTIATE_TEST_SUITE_P(All, EveryLoss, ::testing::ValuesIn(losses()),
                         [](const auto& test) { return str(test.param); });
INSTANTIATE_TEST_SUITE_P(All, EverySlowRank, ::testing::ValuesIn(slow_ranks()),
                         [](const auto& test) { return str(test.param); });

// Returns the peer that each survivor reports, or -1 if none. The text is
// "[receive] rank 0 of 3 (gloo): peer 1 on ...".
std::vector<int> blamed(const Loss& loss, const std::vector<std::string>& told) {
  const std::string host = loss.over_processes ? " on [a-zA-Z0-9_.-]+" : "";
  std::vector<int> blamed;
  for (size_t rank = 0; rank < told.size(); ++rank) {
    blamed.push_back(-1);
    for (int peer = 0; peer < loss.row.ranks; ++peer) {
      const std::string wanted =
          fmt::format(R"(\[[a-z_]+\] rank {} of {} \({}\): peer {}{} .*after [0-9.]+ s)", rank,
                      loss.row.ranks, loss.backend, peer, host);
      if (::testing::Value(told[rank], ::testing::MatchesRegex(wanted))) blamed.back() = peer;
    }
  }
  return blamed;
}

// A rank only knows the peer that it waits for: "peer 1 failed" is correct even if rank 1 waits for
// rank 2. So the reported peers lead to the lost rank, in fewer steps than there are ranks.
TEST_P(EveryLoss, EndsEverySurvivorNamesLeadToTheLostRankAndNothingStays) {
  const Loss& loss = GetParam();
  const auto start = std::chrono::steady_clock::now();
  const std::vector<std::string> told = outcomes();
  expect_nothing_left();
  EXPECT_LT(std::chrono::steady_clock::now() - start, 20s) << "of 30 s timeout and 20 s grace";
  const std::vector<int> names = blamed(loss, told);
  for (int rank = 0; rank < loss.row.ranks; ++rank) {
    int at = rank;
    for (int step = 0; step < loss.row.ranks && at >= 0 && at != loss.row.victim; ++step)
      at = names[static_cast<size_t>(at)];
    EXPECT_EQ(at, loss.row.victim)
        << "rank " << rank << ": " << fmt::format("{}", fmt::join(told, "\n"));
  }
  if (loss.fault == "throws") {
    EXPECT_EQ(told[static_cast<size_t>(loss.row.victim)], "out of luck");
  }
}

TEST_P(EverySlowRank, IsToldToAllWithTheTimeItCosts) {
  const std::string wanted =
      fmt::format("rank {}, {} ms or more", GetParam().row.victim, kSlow.count() / 2);
  EXPECT_THAT(outcomes(), ::testing::Each(wanted));
  expect_nothing_left();
}

}  // namespace

int main_of_rank(char** arguments) { return run_rank(arguments[0]); }

}  // namespace howmany

int main(int argc, char** argv) {
  return howmany::testing_support::rank_main(argc, argv, howmany::main_of_rank);
}
