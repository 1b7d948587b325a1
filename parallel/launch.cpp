#include "parallel/launch.h"

#include <exception>
#include <mutex>
#include <thread>

#include "core/error.h"
#include "parallel/engine.h"

namespace howmany {
namespace {

std::string text_of(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "an exception of unknown type";
  }
}

}  // namespace

void launch_threads(int world, const std::function<void(Comm&)>& body) {
  HM_REQUIRE(world >= 1, "[launch] {} ranks", world);
  std::mutex mutex;
  std::exception_ptr first;
  const auto fail = [&](Comm& comm, std::exception_ptr failure) {
    const std::string why = text_of(failure);
    {
      std::lock_guard lock(mutex);
      if (!first) first = std::move(failure);
    }
    comm.abort(why);
  };
  const auto run = [&](std::unique_ptr<Comm> comm) {
    try {
      body(*comm);
    } catch (...) {
      fail(*comm, std::current_exception());
    }
  };
  std::vector<std::jthread> threads;
  for (auto& engine : comms::local(world)) {
    auto comm = std::make_unique<Comm>(std::move(engine));
    try {
      threads.emplace_back([&run, comm = std::move(comm)]() mutable { run(std::move(comm)); });
    } catch (...) {
      std::lock_guard lock(mutex);
      if (!first) first = std::current_exception();
    }
  }
  threads.clear();
  if (first) std::rethrow_exception(first);
}

}  // namespace howmany
