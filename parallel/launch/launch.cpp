// SPDX-License-Identifier: Apache-2.0
#include "parallel/launch/launch.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "core/base/error.h"
#include "core/base/private_folder.h"
#include "core/base/text/names.h"
#include "core/profile/recorder.h"
#include "parallel/comm/comm_list.h"
#include "parallel/comm/first_failure.h"
#include "parallel/comm/hang_timeout.h"
#include "parallel/comm/staging.h"
#include "parallel/launch/program_id.h"

namespace howmany {
namespace {

using Factory = std::unique_ptr<CommEngine> (*)(const Place&, std::chrono::milliseconds);

Factory factory_of(std::string_view backend) {
#define X(name, what, ...) \
  if (backend == #name) return &comms::name;
  HM_COMMS(X)
#undef X
  throw std::invalid_argument(unknown_name("backend", backend, comm_names()));
}

// Tracks the ranks that still run, and the first failure.
class LiveRanks {
 public:
  explicit LiveRanks(int world) : present_(static_cast<size_t>(world), true) {}

  void leave(int rank) {
    change([&] { present_[static_cast<size_t>(rank)] = false; });
  }
  void fail(const std::exception_ptr& failure) {
    change([&] { failure_.keep(failure); });
  }
  // Blocks without limit. Once a rank has failed, the others must end within hang_timeout().
  void wait_for_all() {
    std::unique_lock lock(mutex_);
    const auto none = [this] { return std::ranges::find(present_, true) == present_.end(); };
    changed_.wait(lock, [&] { return none() || failure_.get(); });
    if (changed_.wait_for(lock, hang_timeout(), none)) return;
    const auto hung = std::ranges::find(present_, true) - present_.begin();
    end_hung_process(fmt::format("rank {} of {}", hung, present_.size()),
                     "another failed: " + text_of(failure_.get()));
  }
  void rethrow() const { failure_.rethrow(); }

 private:
  void change(const std::function<void()>& what) {
    {
      const std::lock_guard lock(mutex_);
      what();
    }
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<bool> present_;
  FirstFailure failure_;
};

// Runs body(join(rank)) on one thread per rank.
void run_ranks(int world, const std::function<std::unique_ptr<Comm>(int)>& join,
               const std::function<void(Comm&)>& body) {
  LiveRanks ranks(world);
  const auto run = [&](int rank) {
    const TrackScope track(rank, "rank");
    std::unique_ptr<Comm> comm;
    try {
      comm = join(rank);
      body(*comm);
    } catch (...) {
      const std::string why = text_of(std::current_exception());
      ranks.fail(std::current_exception());
      if (comm) comm->abort(why);
    }
    comm.reset();
    ranks.leave(rank);
  };
  std::vector<std::jthread> threads;
  try {
    for (int rank = 0; rank < world; ++rank) threads.emplace_back(run, rank);
  } catch (...) {
    ranks.fail(std::current_exception());
    for (int rank = static_cast<int>(threads.size()); rank < world; ++rank) {
      try {
        join(rank);  // joins and leaves, so that no peer waits for a rank without a thread
      } catch (const std::exception&) {
      }
      ranks.leave(rank);
    }
  }
  ranks.wait_for_all();
  threads.clear();
  ranks.rethrow();
}

// Each rank sends its host and program to all. A long program text is cut and has a hash of all.
constexpr size_t kHostBytes = 64, kIntroduction = 512;

Tensor introduction(const Place& place) {
  Tensor t = Tensor::zeros({static_cast<int64_t>(kIntroduction)}, Dtype::u8);
  auto* const bytes = reinterpret_cast<char*>(t.mutable_data<uint8_t>());
  place.host.copy(bytes, kHostBytes - 1);
  const size_t hash = std::hash<std::string>()(place.program);
  std::memcpy(bytes + kHostBytes, &hash, sizeof hash);
  const size_t begin = kHostBytes + sizeof hash;
  place.program.copy(bytes + begin, kIntroduction - begin - 1);
  return t;
}

void introduce(CommEngine& engine, const Place& place) {
  Tensor mine = introduction(place);
  if (!is_native(engine, mine)) mine = stage_in(engine, mine, nullptr);
  Tensor gathered =
      allocate_staging(engine, Tensor::empty({place.world, mine.numel()}, Dtype::u8), nullptr);
  engine.all_gather(mine, gathered);
  engine.finish();
  const Tensor all = gathered.to(Device{});
  Roster roster = engine.roster();
  std::vector<std::string> programs;
  for (int r = 0; r < place.world; ++r) {
    const auto* const bytes =
        reinterpret_cast<const char*>(all.data<uint8_t>()) + static_cast<size_t>(r) * kIntroduction;
    roster.hosts.emplace_back(bytes);
    size_t hash = 0;
    std::memcpy(&hash, bytes + kHostBytes, sizeof hash);
    const std::string text = bytes + kHostBytes + sizeof hash;
    programs.push_back(text.size() + 1 < kIntroduction - kHostBytes - sizeof hash
                           ? text
                           : fmt::format("{}... ({:x})", text, hash));
  }
  engine.set_roster(std::move(roster));
  const std::string difference = difference_of(programs);
  HM_REQUIRE(difference.empty(), "[connect] {}", difference);
}

}  // namespace

std::unique_ptr<Comm> connect(const Place& place, std::string_view backend,
                              std::chrono::milliseconds timeout) {
  const Factory factory = factory_of(backend);
  HM_REQUIRE(place.world >= 1 && place.rank >= 0 && place.rank < place.world,
             "[connect] rank {} of {}", place.rank, place.world);
  HM_REQUIRE(timeout.count() > 0, "[connect] timeout of {} ms", timeout.count());
  const auto start = std::chrono::steady_clock::now();
  const auto failed = [&](int peer, const char* why) {
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    return CommError("connect", place.rank, place.world, backend, peer, "", elapsed.count(), why);
  };
  try {
    std::unique_ptr<CommEngine> engine = factory(place, timeout);
    if (place.world > 1) introduce(*engine, place);
    auto comm = std::make_unique<Comm>(std::move(engine));
    comm->set_timeout(timeout);
    return comm;
  } catch (const EngineError& e) {
    throw failed(e.peer(), e.what());
  } catch (const Error& e) {
    throw failed(-1, e.what());
  }
}

void launch_threads(int world, const std::function<void(Comm&)>& body, std::string_view backend) {
  HM_REQUIRE(world >= 1, "[launch] {} ranks", world);
  if (backend == "local") {
    auto engines = comms::local_group(world);
    const auto join = [&](int rank) {
      return std::make_unique<Comm>(std::move(engines[static_cast<size_t>(rank)]));
    };
    return run_ranks(world, join, body);
  }
  const GuardedFolder folder;
  const auto join = [&](int rank) {
    return connect({rank, world, rank, "file:" + folder.path(), "threads"}, backend);
  };
  run_ranks(world, join, body);
}

}  // namespace howmany
