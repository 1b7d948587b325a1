// SPDX-License-Identifier: Apache-2.0
#include "benches/common/program.h"

#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>

#include "benches/common/parts_help.h"
#include "benches/common/trainer.h"
#include "benches/common/verify.h"
#include "core/backends/backend.h"
#include "core/backends/selection.h"
#include "core/base/cli/option.h"
#include "core/base/error.h"
#include "core/base/process.h"
#include "core/base/schema/exit_codes.h"
#include "core/base/schema/flags.h"
#include "core/base/startup.h"
#include "core/base/text/names.h"
#include "core/base/text/table.h"
#include "core/nn/model.h"
#include "core/nn/optim.h"
#include "core/profile/recorder.h"
#include "core/tensor/precision.h"
#include "parallel/comm/comm.h"
#include "parallel/comm/hang_timeout.h"
#include "parallel/launch/rank_supervisor.h"
#include "parallel/modes/mode.h"

namespace howmany::benches {
namespace {

// Ranks without a part in a measurement wait here for the next one, for hours if necessary.
constexpr std::chrono::hours kIdleTimeout{6};
constexpr int kUsageError = 2, kFailure = 3;  // exit codes
constexpr double kStart = 30;                 // maximum seconds between the starts of two ranks
// A run ends within 5 s after its timeout: the start of the ranks may take 3.5 s longer than the
// timeout, and ranks have 2 s to report the failure of another.
constexpr double kStartSlack = 3.5;
constexpr std::chrono::milliseconds kGrace(2'000);

std::vector<std::string_view> flags_of(const CLI::App& app, std::vector<std::string>& storage) {
  for (const CLI::Option* option : app.get_options()) storage.push_back(option->get_name());
  return {storage.begin(), storage.end()};
}

nlohmann::json cli_json(const CLI::Option& option) {
  nlohmann::json names = nlohmann::json::array();
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  const bool flag = option.get_items_expected_max() == 0;
  return {{"names", names},
          {"help", option.get_description()},
          {"type", flag ? "" : option.get_type_name()}};
}

// The flags as JSON, from which `howmany completion` and the man page are generated.
nlohmann::json cli_json(const CLI::App& app) {
  nlohmann::json all = {{"description", app.get_description()},
                        {"footer", app.get_footer()},
                        {"parts", parts_help()},
                        {"options", nlohmann::json::array()},
                        {"choices",
                         {{"model", model_names()},
                          {"mode", mode_names()},
                          {"backend", comm_names()},
                          {"kernels", backend_names()},
                          {"optimizer", optimizer_names()},
                          {"precision", precision_names()}}}};
  all["choices"]["backend"].push_back("auto");
  for (const CLI::Option* option :
       app.get_options([](const CLI::Option* o) { return !o->get_group().empty(); }))
    all["options"].push_back(cli_json(*option));
  return all;
}

// Libraries crash if memory runs out.
std::string memory_hint(int signal) {
  rlimit limit{};
  const bool crash = signal == SIGSEGV || signal == SIGBUS || signal == SIGABRT;
  if (!crash || getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return "";
  return fmt::format("; it had at most {} MiB of memory: raise ulimit -v", limit.rlim_cur >> 20);
}

std::string how_it_ended(const RankExit& end) {
  if (!end.why.empty()) return end.why;
  const std::string words = end.last_line.empty() ? "" : ": " + end.last_line;
  if (end.signal == 0) return fmt::format("ended with exit code {}{}", end.code, words);
  const char* const name = sigabbrev_np(end.signal);
  return fmt::format("was ended by signal {} (SIG{}, {}){}{}", end.signal, name ? name : "?",
                     strsignal(end.signal), words, memory_hint(end.signal));
}

// Ends a rank that howmany started without destructors, since MPI's would wait for the other ranks.
void end_failed_rank(int code) {
  if (std::getenv("HOWMANY_EXITS") == nullptr) return;
  std::cout.flush();
  std::fflush(nullptr);
  std::_Exit(code);
}

void run_rank(const Workload& work, Comm& comm, Device device, const Ranks::Body& body) {
  const DeviceScope on(device);
  const KernelScope kernels(work.kernels);
  const PrecisionScope precision(work.precision);
  const std::chrono::milliseconds time(static_cast<int64_t>(work.timeout_seconds * 1e3));
  comm.set_timeout(time);
  set_hang_timeout(time);
  body(comm, device);
}

}  // namespace

std::string describe_end(const RankExit& end, int world) {
  const std::string who = end.rank < 0 ? "mpirun" : fmt::format("rank {} of {}", end.rank, world);
  return who + " " + how_it_ended(end);
}

int run_program(const std::string& name, const std::function<int()>& body) {
  prepare_process();
  supervise_rank();
  const auto failed = [&name](const std::exception& error, int code) {
    std::cerr << name << ": " << without_controls(reason_of(error)) << "\n";
    end_failed_rank(code);
    return code;
  };
  try {
    const int code = body();
    // A full disk is detected only when the last buffer is written. It must not count as success.
    HM_ENSURE(std::cout.flush() && std::fflush(stdout) == 0,
              "cannot write to stdout: is the disk full?");
    return code;
  } catch (const CLI::Success&) {
    return 0;
  } catch (const CLI::ParseError& e) {
    return failed(e, kUsageError);
  } catch (const std::invalid_argument& e) {
    return failed(e, kUsageError);
  } catch (const std::exception& e) {
    return failed(e, kFailure);
  }
}

std::vector<std::string> parse(CLI::App& app, int argc, char** argv) {
  app.allow_extras();
  bool description = false;
  add_switch(app, flag::kDescribeOptions, description)->group("");  // for `howmany completion`
  const std::vector<std::string> words(argv + 1, argv + argc);
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
    if (description) {
      std::cout << cli_json(app).dump(2) << "\n";
      throw CLI::Success();
    }
  } catch (const CLI::Success& help) {
    app.exit(help);
    throw;
  } catch (const InputError& e) {  // of a value
    throw std::invalid_argument(e.what());
  }
  std::vector<std::string> storage, rest = app.remaining();
  for (const std::string& extra : rest) {
    if (extra.starts_with("--benchmark_")) continue;
    throw std::invalid_argument(
        unknown_name("flag", extra.substr(0, extra.find('=')), flags_of(app, storage)));
  }
  return rest;
}

int supervise(const std::string& name, int argc, char** argv, int world,
              const std::set<std::string>& backends, double timeout_seconds) {
  std::vector<std::string> command(argv, argv + argc);
  command[0] = program_path();
  const std::chrono::duration<double, std::milli> start((timeout_seconds + kStartSlack) * 1e3);
  const RankExit end =
      launch_processes(command, world,
                       {.grace = kGrace,
                        .start_limit = std::chrono::duration_cast<std::chrono::milliseconds>(start),
                        .mpirun = backends.contains("mpi")});
  if (end.forwarded != 0) return kInterrupted;
  if (end.code == 0 || end.code == kInterrupted) return end.code;
  std::cerr << fmt::format("{}: {}\n", name, without_controls(describe_end(end, world)));
  return end.signal == 0 && (end.code == 1 || end.code == 2) ? end.code : 3;
}

Ranks::Ranks(Place place, const std::set<std::string>& backends, double timeout_seconds)
    : place_(std::move(place)) {
  if (place_.world == 1) return;
  const std::chrono::duration<double> most(std::max(kStart, timeout_seconds));
  for (const std::string& backend : backends) {
    auto world =
        connect(place_, backend, std::chrono::duration_cast<std::chrono::milliseconds>(most));
    world->set_timeout(kIdleTimeout);
    worlds_[backend] = std::move(world);
  }
  report_started(place_);
}

bool Ranks::take_part(const Workload& work) const {
  return place_.rank < (work.over_processes() ? work.ranks() : 1);
}

void Ranks::run(const Workload& work, const Body& body) {
  if (work.over_processes()) return run_over_processes(work, body);
  if (!take_part(work)) return;
  launch_threads(work.ranks(), [&](Comm& comm) {
    run_rank(work, comm, work.devices_of(comm.rank()).front(), body);
  });
}

void Ranks::run_over_processes(const Workload& work, const Body& body) {
  HM_REQUIRE(work.ranks() <= place_.world, "{} devices over {} need {} processes, not {}",
             work.count(), work.backend, work.ranks(), place_.world);
  HM_ENSURE(failure_.empty(), "not measured, because before: {}", failure_);
  try {
    const Device device = work.device_of(place_.rank % work.ranks());
    const DeviceScope on(device);  // also for the threads that the group starts
    Comm* const comm = group_for(work);
    if (comm == nullptr) return;
    HM_ENSURE(comm->size() == work.ranks(),
              "{} ranks came for {}, not {}: give --devices if the hosts have different numbers of "
              "ranks",
              comm->size(), work.backend, work.ranks());
    const TrackScope track(comm->rank(), "rank");
    run_rank(work, *comm, device, body);
  } catch (const WrongData&) {
    throw;  // all ranks agree on it and continue
  } catch (const std::exception& e) {
    failure_ = e.what();
    group_.reset();
    for (const auto& [backend, world] : worlds_) world->abort(failure_);
    throw;
  }
}

// Reuses the group of the last workload if backend, ranks and devices are equal, because connecting
// takes longer than most measurements. All processes decide alike. Returns null if this process has
// no rank.
Comm* Ranks::group_for(const Workload& work) {
  std::string of = fmt::format("{} {} {}", work.backend, work.ranks(), work.count());
  if (of != group_of_) {
    group_ = worlds_.at(work.backend)->split(take_part(work) ? 0 : -1);
    group_of_ = std::move(of);
  }
  return group_.get();
}

}  // namespace howmany::benches
