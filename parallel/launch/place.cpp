// SPDX-License-Identifier: Apache-2.0
#include <charconv>
#include <cstdlib>
#include <optional>

#include "core/base/error.h"
#include "parallel/launch/launch.h"
#include "parallel/launch/program_id.h"
#include "parallel/launch/slurm.h"

namespace howmany {
namespace {

std::optional<std::string> variable(const char* name) {
  const char* const value = std::getenv(name);
  if (value == nullptr) return {};
  return value;
}

std::optional<int> number(const char* name, int least, int most) {
  const auto text = variable(name);
  if (!text) return {};
  int value = 0;
  const char* const end = text->data() + text->size();
  const auto [stop, error] = std::from_chars(text->data(), end, value);
  HM_REQUIRE(error == std::errc{} && stop == end && value >= least && value <= most,
             "[launch] {}='{}': expected a number from {} to {}", name, *text, least, most);
  return value;
}

constexpr int kMaxRanks = 1 << 20;

// The variables of each launcher, by priority. mpirun precedes srun, because inside a Slurm job it
// starts its ranks through a step, whose variables they inherit.
struct Launcher {
  const char *name, *world, *rank, *local_rank, *local_world;
};
constexpr Launcher kSrun = {"srun", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_LOCALID",
                            nullptr};
constexpr Launcher kLaunchers[] = {
    {"mpirun", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"mpirun", "PMI_SIZE", "PMI_RANK", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    kSrun};

// srun --mpi=pmi2 also sets PMI's variables. Its own have more information.
bool is_srun_itself(const Launcher& other, int world) {
  const bool pmi = std::string_view(other.world) == "PMI_SIZE";
  return pmi && number(kSrun.world, 1, kMaxRanks) == world && variable(kSrun.rank) &&
         variable(kSrun.rank) == variable(other.rank);
}

// Returns a port derived from the job, below the ephemeral ports.
int port_of(std::string_view job) {
  uint32_t hash = 2166136261;  // FNV-1a
  for (const char c : job) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619;
  return 20'000 + static_cast<int>(hash % 10'000);
}

// "1885863936.0;tcp://192.0.2.2,10.0.0.1:59397;tcp6://..." -> "192.0.2.2"
std::string host_of_mpirun() {
  const std::string uri = variable("OMPI_MCA_orte_hnp_uri").value_or("");
  const size_t start = uri.find("tcp://");
  if (start == std::string::npos) return "";
  return uri.substr(start + 6, uri.find_first_of(",:;", start + 6) - start - 6);
}

std::string mpirun_rendezvous(const Place& place) {
  const auto job = variable("PMIX_NAMESPACE");
  const std::string host = place.local_world == place.world ? "127.0.0.1" : host_of_mpirun();
  return job && !host.empty() ? fmt::format("tcp:{}:{}", host, port_of(*job)) : "";
}

std::string srun_rendezvous() {
  std::string nodes = variable("SLURM_STEP_NODELIST").value_or("");
  if (nodes.empty()) nodes = variable("SLURM_JOB_NODELIST").value_or("");
  const std::string host = first_host(nodes);
  const std::string step =
      variable("SLURM_JOB_ID").value_or("") + "." + variable("SLURM_STEP_ID").value_or("");
  return host.empty() ? "" : fmt::format("tcp:{}:{}", host, port_of(step));
}

std::optional<Place> place_from_launcher() {
  for (const Launcher& launcher : kLaunchers) {
    const auto world = number(launcher.world, 1, kMaxRanks);
    if (!world || is_srun_itself(launcher, *world)) continue;
    const auto rank = number(launcher.rank, 0, kMaxRanks);
    HM_REQUIRE(rank || *world == 1, "[launch] {} started {} tasks ({}), but {} is not set",
               launcher.name, *world, launcher.world, launcher.rank);
    HM_REQUIRE(rank.value_or(0) < *world, "[launch] {}={} but {}={}", launcher.rank, *rank,
               launcher.world, *world);
    Place place{.rank = rank.value_or(0), .world = *world, .launcher = launcher.name};
    place.local_rank = number(launcher.local_rank, 0, kMaxRanks).value_or(place.rank);
    place.local_world = launcher.local_world
                            ? number(launcher.local_world, 1, kMaxRanks).value_or(0)
                            : tasks_on_node(variable("SLURM_STEP_TASKS_PER_NODE").value_or(""),
                                            number("SLURM_NODEID", 0, kMaxRanks).value_or(0));
    return place;
  }
  return {};
}

// RANK and WORLD_SIZE have priority, unless the launcher started more tasks. Then every task has
// the same values, and several tasks would be rank 0.
void refuse_contradiction(const Place& variables, const Place& launched) {
  HM_REQUIRE(variables.world >= launched.world,
             "[launch] {} started {} tasks, but WORLD_SIZE={} in each of them: unset RANK and "
             "WORLD_SIZE, or start one task",
             launched.launcher, launched.world, variables.world);
  if (variables.world > launched.world || variable("TORCHELASTIC_RUN_ID")) return;
  HM_REQUIRE(variables.rank == launched.rank,
             "[launch] RANK={}, but {} says rank {} of {}: unset RANK and WORLD_SIZE",
             variables.rank, launched.launcher, launched.rank, launched.world);
}

// Returns the rendezvous at MASTER_ADDR and MASTER_PORT, or "" if they are not set.
std::string master() {
  const auto host = variable("MASTER_ADDR");
  auto port = number("MASTER_PORT", 1, 65535);
  if (!host || host->empty() || !port) return "";
  // In this case torchrun's agent listens on MASTER_PORT itself.
  if (variable("TORCHELASTIC_USE_AGENT_STORE") == "True") port = *port % 65535 + 1;
  return fmt::format("tcp:{}:{}", *host, *port);
}

std::string rendezvous_of(const Place& place) {
  if (place.world == 1) return "";
  if (const auto ours = variable("HOWMANY_RENDEZVOUS")) return *ours;
  if (std::string address = master(); !address.empty()) return address;
  if (place.launcher == "srun") return srun_rendezvous();
  return place.launcher == "mpirun" ? mpirun_rendezvous(place) : "";
}

}  // namespace

Place place_from_environment() {
  const auto world = number("WORLD_SIZE", 1, kMaxRanks);
  const auto rank = number("RANK", 0, kMaxRanks);
  HM_REQUIRE(rank.has_value() == world.has_value(), "[launch] {} is set, but {} is not",
             rank ? "RANK" : "WORLD_SIZE", rank ? "WORLD_SIZE" : "RANK");
  const bool ours = variable("HOWMANY_RENDEZVOUS").has_value();
  std::optional<Place> place = place_from_launcher();
  if (world) {
    HM_REQUIRE(*rank < *world, "[launch] RANK={} but WORLD_SIZE={}", *rank, *world);
    Place variables{.rank = *rank, .world = *world, .launcher = ours ? "howmany" : "torchrun"};
    if (place && !ours) refuse_contradiction(variables, *place);
    variables.local_rank = number("LOCAL_RANK", 0, kMaxRanks).value_or(*rank);
    variables.local_world = number("LOCAL_WORLD_SIZE", 1, kMaxRanks).value_or(0);
    place = variables;
  }
  if (!place || (place->world == 1 && !world)) return {};
  place->rendezvous = rendezvous_of(*place);
  place->host = host_name();
  place->program = this_program();
  HM_REQUIRE(place->world == 1 || !place->rendezvous.empty() || place->launcher == "mpirun",
             "[launch] {} ranks, but where they meet is missing: set HOWMANY_RENDEZVOUS, or "
             "MASTER_ADDR and MASTER_PORT",
             place->world);
  return *place;
}

}  // namespace howmany
