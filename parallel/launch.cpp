#include "parallel/launch.h"

#include <cstring>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "core/error.h"
#include "core/names.h"
#include "parallel/comm_list.h"
#include "parallel/private_folder.h"
#include "parallel/program_id.h"

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

std::string text_of(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "an exception of unknown type";
  }
}

// The first failure of several threads.
class FirstFailure {
 public:
  void keep(std::exception_ptr failure) {
    std::lock_guard lock(mutex_);
    if (!first_) first_ = std::move(failure);
  }
  void rethrow() {
    if (first_) std::rethrow_exception(first_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr first_;
};

// Runs join(rank), then body on what it returns, on a thread for each rank.
void run_ranks(int world, const std::function<std::unique_ptr<Comm>(int)>& join,
               const std::function<void(Comm&)>& body) {
  FirstFailure failure;
  const auto run = [&](int rank) {
    std::unique_ptr<Comm> comm;
    try {
      comm = join(rank);
      body(*comm);
    } catch (...) {
      const std::string why = text_of(std::current_exception());
      failure.keep(std::current_exception());
      if (comm) comm->abort(why);
    }
  };
  std::vector<std::jthread> threads;
  try {
    for (int rank = 0; rank < world; ++rank) threads.emplace_back(run, rank);
  } catch (...) {
    failure.keep(std::current_exception());
    for (int rank = static_cast<int>(threads.size()); rank < world; ++rank) {
      try {
        join(rank);  // and leaves: nobody waits for a rank that has no thread
      } catch (const std::exception&) {
      }
    }
  }
  threads.clear();
  failure.rethrow();
}

// Who the ranks are: what each tells of itself, by rank. The text goes cut, with a hash of all.
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
  Tensor all = Tensor::zeros({place.world * static_cast<int64_t>(kIntroduction)}, Dtype::u8);
  engine.all_gather(introduction(place), all);
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
  const PrivateFolder folder;
  const auto join = [&](int rank) {
    return connect({rank, world, rank, "file:" + folder.path(), "threads"}, backend);
  };
  run_ranks(world, join, body);
}

}  // namespace howmany
