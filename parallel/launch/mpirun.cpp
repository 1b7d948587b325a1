// SPDX-License-Identifier: Apache-2.0
#include "parallel/launch/mpirun.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/base/process.h"

namespace howmany {
namespace {

// The supervisor reports a signal as 128 + signal.
RankExit read_exit(const std::filesystem::path& file, int rank) {
  int code = 0;
  std::ifstream(file) >> code;
  return {.rank = rank, .code = code, .signal = code > 128 && code < 128 + 65 ? code - 128 : 0};
}

}  // namespace

std::vector<std::string> mpirun_command(const std::vector<std::string>& argv, int world,
                                        const LaunchFolders& folders) {
  std::vector<std::string> command = {"mpirun", "--quiet"};
  if (geteuid() == 0) command.emplace_back("--allow-run-as-root");
  // howmany has checked oversubscription, and ranks bind themselves.
  command.insert(command.end(), {"--oversubscribe", "--bind-to", "none"});
  // Stays on this host: no ssh, no Slurm. Ranks share memory and do not listen. OFI is excluded
  // with tcp: Open MPI 4.1 would use it instead, which makes small messages slower. The children of
  // mpirun are started by its main thread, because they end with that thread.
  std::vector<std::pair<const char*, std::string>> settings = {
      {"plm", "isolated"},
      {"ras", "^slurm"},
      {"btl", "^tcp,ofi"},
      {"mtl", "^ofi"},
      {"oob_tcp_if_include", "lo"},
      {"odls_base_num_threads", "0"},
      {"orte_tmpdir_base", folders.launch}};
  if (!folders.segments.empty())
    settings.emplace_back("btl_vader_backing_directory", folders.segments);
  for (const auto& [name, value] : settings) command.insert(command.end(), {"--mca", name, value});
  command.insert(command.end(), {"-n", std::to_string(world)});
  command.insert(command.end(), argv.begin(), argv.end());
  return command;
}

std::string loopback_preload() {
  const char* const list = std::getenv("LD_PRELOAD");
  const std::string rest = list != nullptr && *list != '\0' ? std::string(":") + list : "";
  for (const char* folder : {"", "/../lib"}) {
    const std::string path = program_folder() + folder + "/libhowmany_loopback.so";
    if (std::filesystem::exists(path)) return "LD_PRELOAD=" + path + rest;
  }
  return "";
}

std::optional<RankExit> first_bad_exit(const std::string& folder, int world) {
  std::optional<RankExit> first;
  std::filesystem::file_time_type when;
  for (int rank = 0; rank < world; ++rank) {
    const std::filesystem::path file = fmt::format("{}/exit.{}", folder, rank);
    std::error_code absent;
    const auto written = std::filesystem::last_write_time(file, absent);
    if (absent || (first && written >= when)) continue;
    first = read_exit(file, rank);
    when = written;
  }
  return first;
}

pid_t pid_of_rank(const std::string& folder, int rank) {
  pid_t pid = 0;
  std::ifstream(fmt::format("{}/pid.{}", folder, rank)) >> pid;
  return pid;
}

std::string events_file(const std::string& folder) { return folder + "/events"; }

void report_event(const std::string& folder) {
  const int fd = open(events_file(folder).c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return;  // the launcher has ended
  (void)!write(fd, "", 1);
  close(fd);
}

bool is_of_outer_launch(const std::string& variable) {
  constexpr std::array kOurs = {
      "RANK",        "WORLD_SIZE",         "LOCAL_RANK",    "LOCAL_WORLD_SIZE", "MASTER_ADDR",
      "MASTER_PORT", "HOWMANY_RENDEZVOUS", "HOWMANY_EXITS", kSupervise};
  for (const std::string_view name : kOurs)
    if (variable == name) return true;
  // Also drops OMPI_MCA_ settings of the user, which cannot be distinguished from mpirun's.
  const bool in_job =
      std::getenv("OMPI_COMM_WORLD_SIZE") || std::getenv("PMIX_RANK") || std::getenv("PMI_RANK");
  return in_job && (variable.starts_with("OMPI_") || variable.starts_with("PMIX_") ||
                    variable.starts_with("PMI_"));
}

}  // namespace howmany
