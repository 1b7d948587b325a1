#include "parallel/mpirun.h"

#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <utility>

#include "core/base/error.h"

namespace howmany {
namespace {

// $0 is the launch folder. The arguments are the shared memory folder, the grace in 0.1 s, and the
// rank's own arguments. Signals to the group also reach the rank, so the shell ignores them by an
// empty trap. It is silent about a killed rank, because howmany reports that.
constexpr const char* kShell = R"sh(
segments=$1 ticks=$2; shift 2
export RANK=$OMPI_COMM_WORLD_RANK WORLD_SIZE=$OMPI_COMM_WORLD_SIZE
export LOCAL_RANK=$OMPI_COMM_WORLD_LOCAL_RANK LOCAL_WORLD_SIZE=$OMPI_COMM_WORLD_LOCAL_SIZE
[ "$RANK" = 0 ] || exec >/dev/null
exec 3>&2 2>/dev/null
trap : TERM INT
sh -c 'echo $$ >"$0/pid.$RANK"; exec "$@"' "$0" "$@" 2>&3 3>&-
code=$?
read -r _ _ _ parent _ <"/proc/$$/stat"
[ "$parent" = $PPID ] || { rm -rf "$0" "$segments"; exit $code; }
rm -f "$0/pid.$RANK"
[ $code = 0 ] && exit 0
echo $code >"$0/.exit.$RANK" && mv "$0/.exit.$RANK" "$0/exit.$RANK"
while [ $ticks -gt 0 ] && [ $(ls "$0" | grep -c '^exit\.') -lt $WORLD_SIZE ]; do
  sleep 0.1
  ticks=$((ticks - 1))
done
exit $code
)sh";

// A shell reports a signal as 128 + signal.
RankExit read_exit(const std::filesystem::path& file, int rank) {
  int code = 0;
  std::ifstream(file) >> code;
  return {.rank = rank, .code = code, .signal = code > 128 && code < 128 + 65 ? code - 128 : 0};
}

}  // namespace

std::vector<std::string> mpirun_command(const std::vector<std::string>& argv, int world,
                                        const LaunchFolders& folders,
                                        std::chrono::milliseconds grace) {
  std::vector<std::string> command = {"mpirun", "--quiet"};
  if (geteuid() == 0) command.emplace_back("--allow-run-as-root");
  // howmany has checked oversubscription, and ranks bind themselves.
  command.insert(command.end(), {"--oversubscribe", "--bind-to", "none"});
  // Stays on this host: no ssh, no Slurm, sockets on the loopback interface. The components are
  // those of a plain mpirun: without tcp, Open MPI 4.1 also polls OFI, which makes small messages
  // slower.
  std::vector<std::pair<const char*, std::string>> settings = {
      {"plm", "isolated"},
      {"ras", "^slurm"},
      {"btl_tcp_if_include", "lo"},
      {"orte_tmpdir_base", folders.launch}};
  if (!folders.segments.empty())
    settings.emplace_back("btl_vader_backing_directory", folders.segments);
  for (const auto& [name, value] : settings) command.insert(command.end(), {"--mca", name, value});
  command.insert(command.end(), {"-n", std::to_string(world), "sh", "-c", kShell, folders.launch,
                                 folders.segments, std::to_string(grace.count() / 100)});
  command.insert(command.end(), argv.begin(), argv.end());
  return command;
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

void signal_ranks(const std::string& folder, int world, int signal) {
  for (int rank = 0; rank < world; ++rank) {
    pid_t pid = 0;
    if (std::ifstream(fmt::format("{}/pid.{}", folder, rank)) >> pid && pid > 0) kill(pid, signal);
  }
}

bool is_of_outer_launch(const std::string& variable) {
  constexpr std::array kOurs = {
      "RANK",        "WORLD_SIZE",  "LOCAL_RANK",         "LOCAL_WORLD_SIZE",
      "MASTER_ADDR", "MASTER_PORT", "HOWMANY_RENDEZVOUS", "HOWMANY_EXITS"};
  for (const std::string_view name : kOurs)
    if (variable == name) return true;
  // Also drops OMPI_MCA_ settings of the user, which cannot be distinguished from mpirun's.
  const bool in_job =
      std::getenv("OMPI_COMM_WORLD_SIZE") || std::getenv("PMIX_RANK") || std::getenv("PMI_RANK");
  return in_job && (variable.starts_with("OMPI_") || variable.starts_with("PMIX_") ||
                    variable.starts_with("PMI_"));
}

}  // namespace howmany
