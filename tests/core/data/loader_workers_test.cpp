// SPDX-License-Identifier: Apache-2.0
// labels: process
// Workers that fail, die or hang, and that nothing of them remains. Threads and processes yield the
// same batches.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "core/data/loader.h"
#include "tests/support/files.h"
#include "tests/support/image_files.h"
#include "tests/support/message_of.h"

namespace howmany {
namespace {

using ::testing::HasSubstr;

// Sample i is (i, key). `on_get` runs first, in the worker.
class NumberedRows final : public Dataset {
 public:
  explicit NumberedRows(int64_t size) : size_(size) {}
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

struct SeenBatch {
  std::vector<int64_t> x, y;
  bool operator==(const SeenBatch&) const = default;
};

std::vector<SeenBatch> batches_of_epoch(Loader& loader, int64_t epoch) {
  std::vector<SeenBatch> batches;
  loader.start_epoch(epoch);
  while (auto batch = loader.next()) {
    const auto x = batch->x.values<int64_t>(), y = batch->y.values<int64_t>();
    batches.push_back({{x.begin(), x.end()}, {y.begin(), y.end()}});
  }
  return batches;
}

std::string error_of(const std::function<void()>& body) {
  return message_of<Error>([&] { body(); });
}

std::string drain(Loader& loader) {
  return error_of([&] {
    while (loader.next()) {
    }
  });
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

TEST_P(As, BatchesDoNotDependOnWorkers) {
  const NumberedRows data(103);
  Loader reference(data, {.global_batch = 8, .workers = 0, .seed = 3});
  for (const int workers : {1, 2, 5}) {
    Loader loader(data, {.global_batch = 8, .workers = workers, .seed = 3, .as = GetParam()});
    for (int64_t epoch : {0, 1, 5})
      EXPECT_EQ(batches_of_epoch(loader, epoch), batches_of_epoch(reference, epoch)) << workers;
  }
}

TEST_P(As, AnAbandonedEpochLeavesNothing) {
  const NumberedRows data(400);
  Loader reference(data, {.global_batch = 4, .workers = 0});
  Loader loader(data, {.global_batch = 4, .workers = 3, .as = GetParam()});
  for (int64_t epoch = 0; epoch < 20; ++epoch) {
    loader.start_epoch(epoch);
    for (int64_t i = 0; i < epoch % 4; ++i) loader.next();
  }
  EXPECT_EQ(batches_of_epoch(loader, 7), batches_of_epoch(reference, 7));
}

TEST_P(As, ContinuesAfterAFailedSample) {
  NumberedRows data(16);
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

TEST_P(As, InAnyOrderTheBatchesAreEqual) {
  const NumberedRows data(103);
  Loader reference(data, {.global_batch = 8, .workers = 0, .seed = 3});
  const std::vector<SeenBatch> expected = batches_of_epoch(reference, 5);
  LoaderOptions free = options(3);
  free.global_batch = 8;
  free.shuffle = true;
  free.seed = 3;
  free.in_order = false;
  Loader loader(data, free);
  std::vector<SeenBatch> batches(expected.size());
  loader.start_epoch(5);
  while (auto batch = loader.next()) {
    const auto x = batch->x.values<int64_t>(), y = batch->y.values<int64_t>();
    batches.at(static_cast<size_t>(batch->number)) = {{x.begin(), x.end()}, {y.begin(), y.end()}};
  }
  EXPECT_EQ(batches, expected);
}

// Batch 0 blocks in its worker until a file exists. The test creates it after it has taken all
// others.
TEST_P(As, InAnyOrderASlowBatchDelaysNoOther) {
  const testing_support::TempFolder folder;
  NumberedRows data(32);
  data.on_get = [&](int64_t index) {
    while (index == 0 && !std::filesystem::exists(folder / "go")) std::this_thread::yield();
  };
  LoaderOptions free = options();
  free.in_order = false;
  Loader loader(data, free);
  loader.start_epoch(0);
  for (int64_t i = 1; i < loader.batches_per_epoch(); ++i) EXPECT_NE(loader.next()->number, 0);
  folder.write("go", "");
  EXPECT_EQ(loader.next()->number, 0);
  EXPECT_FALSE(loader.next());
}

TEST_P(As, AnyOrderIsForOneLoader) {
  const NumberedRows data(32);
  LoaderOptions free = options();
  free.in_order = false;
  free.share = {0, 2};
  EXPECT_THROW(Loader(data, free), std::invalid_argument);
}

// Every worker appends a line "index count seed" to a file.
TEST_P(As, WorkerInitRunsBeforeTheFirstSample) {
  const testing_support::TempFolder folder;
  const NumberedRows data(64);
  const auto told = [&](uint64_t seed, const std::string& name) {
    LoaderOptions with = options(3);
    with.seed = seed;
    with.worker_init = [path = folder / name](const WorkerInfo& info) {
      std::ofstream(path, std::ios::app)
          << fmt::format("{} {} {}\n", info.index, info.count, info.seed);
    };
    {
      Loader loader(data, with);
      batches_of_epoch(loader, 0);
      batches_of_epoch(loader, 1);
      std::ifstream file(folder / name);
      for (size_t lines = 0; lines < 3; file = std::ifstream(folder / name))
        lines = static_cast<size_t>(std::count(std::istreambuf_iterator<char>(file), {}, '\n'));
    }
    std::ifstream file(folder / name);
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    std::ranges::sort(lines);
    return lines;
  };
  const auto lines = told(7, "a");
  ASSERT_EQ(lines.size(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(lines[i].starts_with(fmt::format("{} 3 ", i)));
  EXPECT_NE(lines[0].substr(4), lines[1].substr(4));
  EXPECT_EQ(told(7, "b"), lines);
  EXPECT_NE(told(8, "c"), lines);
}

TEST_P(As, ReportsAWorkerThatCannotStart) {
  const NumberedRows data(64);
  LoaderOptions with = options();
  with.worker_init = [](const WorkerInfo& info) {
    if (info.index == 1) throw Error("no licence");
  };
  Loader loader(data, with);
  loader.start_epoch(0);
  try {  // worker 0 may have loaded all batches before worker 1 started
    while (loader.next()) {
    }
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "[loader] worker 1 cannot start: no licence");
  }
  with.worker_init = [](const WorkerInfo&) { throw Error("no licence"); };
  Loader none(data, with);
  none.start_epoch(0);
  EXPECT_THAT(drain(none), HasSubstr("cannot start: no licence"));
}

TEST_P(As, OtherWorkersEndBetweenEpochs) {
  const NumberedRows data(64);
  Loader reference(data, {.global_batch = 4, .workers = 0, .shuffle = false});
  const size_t threads = entries("/proc/self/task"), processes = children();
  LoaderOptions fresh = options();
  fresh.persistent_workers = false;
  Loader loader(data, fresh);
  for (int64_t epoch : {0, 1, 2}) {
    EXPECT_EQ(batches_of_epoch(loader, epoch), batches_of_epoch(reference, epoch));
    while (entries("/proc/self/task") > threads) std::this_thread::yield();
    EXPECT_EQ(children(), processes);
    EXPECT_FALSE(loader.next());
  }
}

TEST_P(As, PersistentWorkersServeEveryEpoch) {
  const NumberedRows data(64);
  Loader loader(data, options(1));
  batches_of_epoch(loader, 0);
  EXPECT_GT(entries("/proc/self/task") + children(), 1u);
}

size_t resident_pages() {
  std::ifstream file("/proc/self/statm");
  size_t all = 0, resident = 0;
  file >> all >> resident;
  return resident;
}

TEST_P(As, MemoryIsFlatOverAHundredEpochs) {
#ifdef HM_SANITIZED
  GTEST_SKIP() << "a sanitizer keeps what was freed";
#endif
  const NumberedRows data(512);
  Loader loader(data, options());
  for (int64_t epoch = 0; epoch < 10; ++epoch) batches_of_epoch(loader, epoch);
  const size_t before = resident_pages();
  for (int64_t epoch = 10; epoch < 110; ++epoch) batches_of_epoch(loader, epoch);
  // A leak of one batch per epoch would be at least 100 pages.
  EXPECT_LE(resident_pages(), before + 64);
}

TEST_P(As, NothingIsLeftAfterAHundredAbandonedLoaders) {
  const NumberedRows data(1000);
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
  while (entries("/proc/self/task") > threads) std::this_thread::yield();  // joined, still listed
  EXPECT_EQ(children(), processes);
}

// Sample 9 blocks until `go_on`. Never destroyed, because a thread that was abandoned uses it.
struct Hanging {
  Hanging() {
    data.on_get = [this](int64_t index) {
      if (index != 9) return;
      go_on.wait();  // never returns in a process
      left.count_down();
    };
  }
  static Hanging& make() {
    static std::vector<Hanging*>& kept = *new std::vector<Hanging*>;
    return *kept.emplace_back(new Hanging);
  }

  std::latch go_on{1}, left{1};
  NumberedRows data{64};
};

TEST_P(As, ReportsAHangingWorker) {
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
    EXPECT_EQ(drain(loader), told);  // and again each time
    EXPECT_EQ(error_of([&] { loader.start_epoch(1); }), told);
  }
  hanging.go_on.count_down();
  if (GetParam() == WorkersAs::threads) hanging.left.wait();
  while (entries("/proc/self/task") > threads) std::this_thread::yield();
}

TEST(Processes, ReportsTheLastSampleOfADeadWorker) {
  const pid_t tester = ::getpid();
  for (const int signal : {SIGKILL, SIGSEGV, SIGBUS}) {
    NumberedRows data(64);
    data.on_get = [&](int64_t index) {
      if (index != 21 || ::getpid() == tester) return;
      ::signal(signal, SIG_DFL);  // a sanitizer would print its own report
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

TEST(Processes, ReportsAWorkerThatExits) {
  const pid_t tester = ::getpid();
  NumberedRows data(64);
  data.on_get = [&](int64_t index) {
    if (index == 3 && ::getpid() != tester) ::_exit(7);
  };
  Loader loader(data, {.global_batch = 4, .workers = 1, .as = WorkersAs::processes});
  loader.start_epoch(0);
  EXPECT_THAT(drain(loader), HasSubstr("worker 0 ended with exit code 7 at /data/3.jpg"));
}

TEST(Processes, DoNotShareTheConsumersMemory) {
  const NumberedRows data(64);
  Loader loader(data, {.global_batch = 4,
                       .workers = 1,
                       .prefetch = 1,
                       .shuffle = false,
                       .as = WorkersAs::processes});
  loader.start_epoch(0);
  const auto first = loader.next();
  while (loader.next()) {
  }
  EXPECT_EQ(first->y.data<int64_t>()[3], -3);  // the slot has been reused since
}

TEST(Processes, RefuseTooManyBatchesAhead) {
  const NumberedRows data(64);
  EXPECT_THROW(Loader(data, {.workers = 600, .prefetch = 2, .as = WorkersAs::processes}),
               std::invalid_argument);
  EXPECT_THROW(Loader(data, {.timeout_seconds = -1}), std::invalid_argument);
}

}  // namespace
}  // namespace howmany
