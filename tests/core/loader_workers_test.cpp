// labels: process
// Workers that fail, die or hang, and what they leave behind: nothing. Same batches from threads
// and from processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "core/data/loader.h"
#include "core/error.h"

namespace howmany {
namespace {

using ::testing::HasSubstr;

// Sample i is (i, key); `on_get` runs in the worker, before.
class Numbers final : public Dataset {
 public:
  explicit Numbers(int64_t size) : size_(size) {}
  int64_t size() const override { return size_; }
  SampleSpec spec() const override {
    return {.x = {2}, .x_dtype = Dtype::i64, .y_dtype = Dtype::i64};
  }
  void get(int64_t index, uint64_t key, void* x, void* y) const override {
    if (on_get) on_get(index);
    static_cast<int64_t*>(x)[0] = index;
    static_cast<int64_t*>(x)[1] = static_cast<int64_t>(key >> 1);
    *static_cast<int64_t*>(y) = -index;
  }
  std::string describe() const override { return "numbers"; }
  std::string name_of(int64_t index) const override {
    return "/data/" + std::to_string(index) + ".jpg";
  }

  std::function<void(int64_t)> on_get;

 private:
  int64_t size_;
};

struct Seen {
  std::vector<int64_t> x, y;
  bool operator==(const Seen&) const = default;
};

std::vector<Seen> read_epoch(Loader& loader, int64_t epoch) {
  std::vector<Seen> batches;
  loader.start_epoch(epoch);
  while (auto batch = loader.next()) {
    const auto x = batch->x.values<int64_t>(), y = batch->y.values<int64_t>();
    batches.push_back({{x.begin(), x.end()}, {y.begin(), y.end()}});
  }
  return batches;
}

std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

std::string drain(Loader& loader) {
  return error_of([&] {
    while (loader.next()) {
    }
  });
}

class As : public ::testing::TestWithParam<WorkersAs> {
 protected:
  LoaderOptions options(int workers = 2) const {
    return {.global_batch = 4, .workers = workers, .shuffle = false, .as = GetParam()};
  }
};
INSTANTIATE_TEST_SUITE_P(Kind, As, ::testing::Values(WorkersAs::threads, WorkersAs::processes),
                         [](const auto& kind) {
                           return kind.param == WorkersAs::threads ? "Threads" : "Processes";
                         });

TEST_P(As, SameBatchesWhateverTheWorkersAre) {
  const Numbers data(103);
  Loader reference(data, {.global_batch = 8, .workers = 0, .seed = 3});
  for (const int workers : {1, 2, 5}) {
    Loader loader(data, {.global_batch = 8, .workers = workers, .seed = 3, .as = GetParam()});
    for (int64_t epoch : {0, 1, 5})
      EXPECT_EQ(read_epoch(loader, epoch), read_epoch(reference, epoch)) << workers;
  }
}

TEST_P(As, AShareIsTheSame) {
  const Numbers data(50);
  const LoaderOptions part{.global_batch = 7, .workers = 0, .share = {1, 3}};
  LoaderOptions with = part;
  with.workers = 2;
  with.as = GetParam();
  Loader reference(data, part), loader(data, with);
  EXPECT_EQ(read_epoch(loader, 4), read_epoch(reference, 4));
}

TEST_P(As, AnAbandonedEpochDoesNotShowInTheNext) {
  const Numbers data(400);
  Loader reference(data, {.global_batch = 4, .workers = 0});
  Loader loader(data, {.global_batch = 4, .workers = 3, .as = GetParam()});
  for (int64_t epoch = 0; epoch < 20; ++epoch) {
    loader.start_epoch(epoch);
    for (int64_t i = 0; i < epoch % 4; ++i) loader.next();
  }
  EXPECT_EQ(read_epoch(loader, 7), read_epoch(reference, 7));
}

TEST_P(As, AFailingSampleIsNamedAndTheNextBatchComes) {
  Numbers data(16);
  data.on_get = [](int64_t index) {
    if (index == 5) throw Error("cut short");
  };
  Loader loader(data, options());
  loader.start_epoch(0);
  EXPECT_TRUE(loader.next());
  EXPECT_EQ(error_of([&] { loader.next(); }), "cut short (/data/5.jpg)");
  EXPECT_EQ(loader.next()->y.data<int64_t>()[0], -8);
  EXPECT_TRUE(loader.next());
  EXPECT_FALSE(loader.next());
}

size_t entries(const char* folder) {
  size_t n = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++n;
  return n;
}

size_t children() {
  std::ifstream file("/proc/self/task/" + std::to_string(::getpid()) + "/children");
  size_t n = 0;
  for (std::string pid; file >> pid;) ++n;
  return n;
}

TEST_P(As, NothingIsLeftAfterAHundredAbandonedLoaders) {
  const Numbers data(1000);
  const auto once = [&](int round) {
    Loader loader(data, {.global_batch = 4, .workers = 2, .as = GetParam()});
    if (round % 3 > 0) loader.start_epoch(0);
    if (round % 3 > 1) loader.next();
  };
  once(2);
  const size_t descriptors = entries("/proc/self/fd"), threads = entries("/proc/self/task"),
               processes = children();
  for (int round = 0; round < 100; ++round) once(round);
  EXPECT_EQ(entries("/proc/self/fd"), descriptors);
  while (entries("/proc/self/task") > threads) std::this_thread::yield();  // joined, not yet gone
  EXPECT_EQ(children(), processes);
}

// Sample 9 waits until it is told to go on. Never destroyed: a thread that was left behind uses it.
struct Hanging {
  Hanging() {
    data.on_get = [this](int64_t index) {
      if (index != 9) return;
      go_on.wait();  // a process never passes
      left.count_down();
    };
  }
  static Hanging& make() {
    static std::vector<Hanging*>& kept = *new std::vector<Hanging*>;
    return *kept.emplace_back(new Hanging);
  }

  std::latch go_on{1}, left{1};
  Numbers data{64};
};

TEST_P(As, AWorkerThatHangsIsNamedAndTheLoopEnds) {
  Hanging& hanging = Hanging::make();
  const size_t threads = entries("/proc/self/task");
  {
    LoaderOptions hasty = options();
    hasty.timeout_seconds = 2;
    Loader loader(hanging.data, hasty);
    loader.start_epoch(0);
    const std::string told = drain(loader);
    EXPECT_THAT(told, HasSubstr("no batch for 2 s"));
    EXPECT_THAT(told, HasSubstr("is at /data/9.jpg"));
    EXPECT_EQ(drain(loader), told);  // and so for ever
    EXPECT_EQ(error_of([&] { loader.start_epoch(1); }), told);
  }
  hanging.go_on.count_down();
  if (GetParam() == WorkersAs::threads) hanging.left.wait();
  while (entries("/proc/self/task") > threads) std::this_thread::yield();
}

TEST(Processes, AWorkerThatDiesIsNamedWithItsLastSample) {
  const pid_t tester = ::getpid();
  for (const int signal : {SIGKILL, SIGSEGV, SIGBUS}) {
    Numbers data(64);
    data.on_get = [&](int64_t index) {
      if (index != 21 || ::getpid() == tester) return;
      ::signal(signal, SIG_DFL);  // a sanitizer would tell its own story
      ::raise(signal);
    };
    Loader loader(data,
                  {.global_batch = 4, .workers = 3, .shuffle = false, .as = WorkersAs::processes});
    loader.start_epoch(0);
    const std::string told = drain(loader);
    EXPECT_THAT(told, HasSubstr("was ended by signal " + std::to_string(signal)));
    EXPECT_THAT(told, HasSubstr("at /data/21.jpg"));
    EXPECT_EQ(drain(loader), told);
  }
  EXPECT_EQ(children(), 0u);
}

TEST(Processes, AWorkerThatExitsIsNamed) {
  const pid_t tester = ::getpid();
  Numbers data(64);
  data.on_get = [&](int64_t index) {
    if (index == 3 && ::getpid() != tester) ::_exit(7);
  };
  Loader loader(data, {.global_batch = 4, .workers = 1, .as = WorkersAs::processes});
  loader.start_epoch(0);
  EXPECT_THAT(drain(loader), HasSubstr("worker 0 ended with exit code 7 at /data/3.jpg"));
}

TEST(Processes, TheConsumersMemoryIsItsOwn) {
  const Numbers data(64);
  Loader loader(data, {.global_batch = 4,
                       .workers = 1,
                       .prefetch = 1,
                       .shuffle = false,
                       .as = WorkersAs::processes});
  loader.start_epoch(0);
  const auto first = loader.next();
  while (loader.next()) {
  }
  EXPECT_EQ(first->y.data<int64_t>()[3], -3);  // the slot has been used again since
}

TEST(Processes, TooManyBatchesAheadAreRefused) {
  const Numbers data(64);
  EXPECT_THROW(Loader(data, {.workers = 600, .prefetch = 2, .as = WorkersAs::processes}),
               std::invalid_argument);
  EXPECT_THROW(Loader(data, {.timeout_seconds = -1}), std::invalid_argument);
}

}  // namespace
}  // namespace howmany
