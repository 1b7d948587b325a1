#include "parallel/launch.h"

#include <exception>
#include <mutex>
#include <thread>

#include "core/error.h"
#include "parallel/engine.h"
#include "parallel/private_folder.h"

namespace howmany {
namespace {

using Factory = std::unique_ptr<CommEngine> (*)(const Place&, std::chrono::milliseconds);

Factory factory_of(std::string_view backend) {
#define X(name, what) \
  if (backend == #name) return &comms::name;
  HM_COMMS(X)
#undef X
  throw std::invalid_argument(fmt::format("[connect] no backend '{}': built in are {}", backend,
                                          fmt::join(comm_names(), ", ")));
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
    return CommError("connect", place.rank, place.world, backend, peer, elapsed.count(), why);
  };
  try {
    auto comm = std::make_unique<Comm>(factory(place, timeout));
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
