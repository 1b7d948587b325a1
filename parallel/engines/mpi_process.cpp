// SPDX-License-Identifier: Apache-2.0
#include "parallel/engines/mpi_process.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <iterator>

#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif

#include "core/base/error.h"
#include "parallel/comm/comm_list.h"

#if HM_SANITIZED
// A hook of LeakSanitizer. Open MPI unloads plug-ins without freeing their memory, and a
// suppression cannot name an unloaded library, so processes that initialize MPI are not checked for
// leaks.
extern "C" int __lsan_is_turned_off() {
  int started = 0;
  return MPI_Initialized(&started) == MPI_SUCCESS && started;
}
#endif

namespace howmany {
namespace {

#if defined(MPIX_CUDA_AWARE_SUPPORT)
bool cuda_aware() { return MPIX_Query_cuda_support() == 1; }
#else
bool cuda_aware() { return false; }
#endif

// Returns why this process cannot join MPI, or "". Without a launcher, MPI_Init starts a world of
// one rank, or hangs.
std::string no_launcher() {
  constexpr std::array kMarks = {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_FD"};
  const bool launched =
      std::ranges::any_of(kMarks, [](const char* name) { return std::getenv(name) != nullptr; });
  return launched ? ""
                  : "mpi joins processes that mpirun (or srun --mpi=pmix) started, and neither "
                    "started this one";
}

constexpr std::chrono::milliseconds kWatchInterval(20);

std::string name_of_level(int level) {
  if (level == MPI_THREAD_MULTIPLE) return "multiple";
  if (level == MPI_THREAD_SERIALIZED) return "serialized";
  return level == MPI_THREAD_FUNNELED ? "funneled" : "single";
}

std::string library_version() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int size = 0;
  MPI_Get_library_version(text.data(), &size);
  const std::string all(text.data());
  return all.substr(0, all.find_first_of(",\n"));
}

}  // namespace

std::string comms::mpi_unavailable(const Place& place) {
  if (place.launcher == "torchrun") return "torchrun started the ranks, and mpi joins mpirun's";
  return place.world > 1 ? no_launcher() : "";
}

void check_mpi(int code) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int size = 0;
  MPI_Error_string(code, text.data(), &size);
  throw EngineError(-1, text.data());
}

MpiProcess& MpiProcess::get() {
  static MpiProcess process;
  return process;
}

MpiProcess::MpiProcess() {
  int started = 0;
  MPI_Initialized(&started);
  if (started != 0) {
    MPI_Query_thread(&level_);
    skips_finalize_ = true;  // the code that initialized MPI finalizes it
  } else {
    const std::string why = no_launcher();
    HM_REQUIRE(why.empty(), "[connect] {}", why);
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level_);
  }
  if (level_ < MPI_THREAD_MULTIPLE)
    throw EngineError(
        -1, "MPI grants the thread level " + name_of_level(level_) + " only; multiple is needed");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &notice_comm_));
  MPI_Comm_set_errhandler(notice_comm_, MPI_ERRORS_RETURN);
  if (const char* const folder = std::getenv("HOWMANY_EXITS")) exits_ = folder;
}

MpiProcess::~MpiProcess() {
  if (watchdog_.joinable()) {
    watchdog_.request_stop();
    watchdog_.join();  // it calls MPI
  }
  int ended = 0;
  MPI_Finalized(&ended);
  if (!skips_finalize_ && ended == 0) MPI_Finalize();
}

std::map<std::string, std::string> MpiProcess::details() const {
  int major = 0, minor = 0;
  MPI_Get_version(&major, &minor);
  return {{"version", library_version()},
          {"standard", fmt::format("MPI {}.{}", major, minor)},
          {"thread_level", fmt::format("multiple asked for, {} got", name_of_level(level_))},
          {"progress", "by the thread that waits, in MPI's blocking calls"},
          {"cuda_aware", cuda_aware() ? "yes" : "no"}};
}

void MpiProcess::notify(uint64_t group, const std::vector<int>& to, Event event, int64_t completed,
                        std::string_view why) noexcept {
  const std::lock_guard locked(mutex_);
  int ended = 0;
  if (MPI_Finalized(&ended); ended != 0) return;
  if (event != Event::left) skips_finalize_ = true;
  for (const int r : to) {
    auto out = std::make_unique<Outgoing>();
    out->message = {group, completed, static_cast<int32_t>(event), {}};
    why.copy(out->message.why, sizeof out->message.why - 1);
    if (MPI_Isend(&out->message, sizeof out->message, MPI_BYTE, r, 0, notice_comm_,
                  &out->request) == MPI_SUCCESS)
      outgoing_.push_back(std::move(out));
  }
}

void MpiProcess::receive_notices() {
  std::erase_if(outgoing_, [](const auto& out) {
    int done = 0;
    return MPI_Test(&out->request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done != 0;
  });
  for (;;) {
    int waiting = 0;
    MPI_Status status;
    check_mpi(MPI_Iprobe(MPI_ANY_SOURCE, 0, notice_comm_, &waiting, &status));
    if (waiting == 0) return;
    Message message{};
    check_mpi(MPI_Recv(&message, sizeof message, MPI_BYTE, status.MPI_SOURCE, 0, notice_comm_,
                       MPI_STATUS_IGNORE));
    message.why[sizeof message.why - 1] = 0;
    notices_[message.group].push_back(
        {status.MPI_SOURCE, static_cast<Event>(message.event), message.completed, message.why});
  }
}

std::vector<MpiProcess::Notice> MpiProcess::notices_of(uint64_t group) {
  const std::lock_guard locked(mutex_);
  receive_notices();
  const auto found = notices_.find(group);
  return found == notices_.end() ? std::vector<Notice>{} : found->second;
}

bool MpiProcess::has_ended(int r) const {
  return !exits_.empty() && access(fmt::format("{}/exit.{}", exits_, r).c_str(), F_OK) == 0;
}

void MpiProcess::watch(MpiWatched& group) {
  const std::lock_guard locked(watch_mutex_);
  watched_.push_back(&group);
  if (!watchdog_.joinable())
    watchdog_ = std::jthread([this](const std::stop_token& stop) { run_watchdog(stop); });
}

void MpiProcess::unwatch(MpiWatched& group) {
  const std::lock_guard locked(watch_mutex_);
  std::erase(watched_, &group);
}

void MpiProcess::run_watchdog(const std::stop_token& stop) {
  std::unique_lock locked(watch_mutex_);
  while (!woken_.wait_for(locked, stop, kWatchInterval, [&] { return stop.stop_requested(); }))
    for (MpiWatched* group : watched_) group->check();
}

}  // namespace howmany
