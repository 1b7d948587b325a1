#include "benches/comm/fidelity_flags.h"

#include <CLI/CLI.hpp>

#include "benches/common/program.h"
#include "core/base/cli/number_check.h"
#include "core/base/schema/flags.h"

namespace howmany::benches {

std::vector<std::string> parse_fidelity(int argc, char** argv, FidelityFlags& flags) {
  CLI::App app("Compares collectives of howmany with a bare loop over the same library.",
               "fidelity_bench");
  app.add_option(flag::kBackend, flags.backend, "gloo or mpi")->capture_default_str();
  app.add_option(flag::kDevices, flags.devices, "one for each rank")->capture_default_str();
  app.add_option(flag::kOps, flags.ops)
      ->delimiter(',')
      ->check(CLI::IsMember({"all_reduce", "all_gather", "broadcast"}));
  app.add_option("--bytes", flags.bytes)->delimiter(',')->check(CLI::Range(64L, 1L << 30));
  app.add_option(flag::kRounds, flags.rounds, "pairs of each case")->check(above_zero());
  app.add_flag(flag::kOversubscribe, flags.oversubscribe, "allow devices that share cores");
  return parse(app, argc, argv);
}

}  // namespace howmany::benches
