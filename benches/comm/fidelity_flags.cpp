// SPDX-License-Identifier: Apache-2.0
#include "benches/comm/fidelity_flags.h"

#include <CLI/CLI.hpp>

#include "benches/common/program.h"
#include "core/base/cli/number_check.h"
#include "core/base/cli/option.h"
#include "core/base/schema/flags.h"

namespace howmany::benches {

std::vector<std::string> parse_fidelity(int argc, char** argv, FidelityFlags& flags) {
  CLI::App app("Compares collectives of howmany with a bare loop over the same library.",
               "fidelity_bench");
  add_option(app, flag::kBackend, flags.backend);
  add_option(app, flag::kDevices, flags.devices);
  add_option(app, flag::kOps, flags.ops)
      ->delimiter(',')
      ->check(CLI::IsMember({"all_reduce", "all_gather", "broadcast"}));
  add_option(app, flag::kBytes, flags.bytes)->delimiter(',')->check(whole_between(64, 1 << 30));
  add_option(app, flag::kPairs, flags.rounds)->check(above_zero());
  add_switch(app, flag::kOversubscribe, flags.oversubscribe);
  return parse(app, argc, argv);
}

}  // namespace howmany::benches
