#include <charconv>
#include <cstdlib>
#include <optional>

#include "core/error.h"
#include "parallel/launch.h"

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

constexpr int kMostRanks = 1 << 20;

// N tasks that each would run alone, as rank 0 of 1.
void refuse_unnamed_ranks() {
  for (const auto& [count, launcher, rank] :
       {std::tuple("OMPI_COMM_WORLD_SIZE", "mpirun", "OMPI_COMM_WORLD_RANK"),
        std::tuple("PMI_SIZE", "mpirun", "PMI_RANK"),
        std::tuple("SLURM_STEP_NUM_TASKS", "srun", "SLURM_PROCID")}) {
    const int tasks = number(count, 1, kMostRanks).value_or(1);
    HM_REQUIRE(tasks == 1,
               "[launch] {} started {} tasks, but each believes to be alone: export RANK=${}, "
               "WORLD_SIZE=${}, MASTER_ADDR and MASTER_PORT in every task",
               launcher, tasks, rank, count);
  }
}

std::string tcp_rendezvous() {
  const auto host = variable("MASTER_ADDR");
  auto port = number("MASTER_PORT", 1, 65535);
  HM_REQUIRE(
      host && !host->empty() && port,
      "[launch] WORLD_SIZE is above 1, but where to meet is missing: set HOWMANY_RENDEZVOUS, "
      "or MASTER_ADDR and MASTER_PORT");
  // torchrun's agent listens on MASTER_PORT itself, then.
  if (variable("TORCHELASTIC_USE_AGENT_STORE") == "True") port = *port % 65535 + 1;
  return fmt::format("tcp:{}:{}", *host, *port);
}

}  // namespace

Place place_from_environment() {
  const auto world = number("WORLD_SIZE", 1, kMostRanks);
  const auto rank = number("RANK", 0, kMostRanks);
  HM_REQUIRE(rank.has_value() == world.has_value(), "[launch] {} is set, but {} is not",
             rank ? "RANK" : "WORLD_SIZE", rank ? "WORLD_SIZE" : "RANK");
  if (!world) {
    refuse_unnamed_ranks();
    return {};
  }
  HM_REQUIRE(*rank < *world, "[launch] RANK={} but WORLD_SIZE={}", *rank, *world);
  const auto meeting = variable("HOWMANY_RENDEZVOUS");
  Place place;
  place.rank = *rank;
  place.world = *world;
  place.launcher = meeting ? "howmany" : "torchrun";
  place.local_rank = number("LOCAL_RANK", 0, kMostRanks).value_or(*rank);
  if (*world > 1) place.rendezvous = meeting ? *meeting : tcp_rendezvous();
  return place;
}

}  // namespace howmany
