// SPDX-License-Identifier: Apache-2.0
// The program `howmany`. Errors become one line on stderr and an exit code.
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "core/base/schema/exit_codes.h"
#include "core/base/startup.h"
#include "core/base/text/table.h"
#include "reports/cli/root_command.h"
#include "reports/cli/version.h"
#include "reports/results/record.h"

namespace {

using namespace howmany;
using namespace howmany::reports;

// The message may quote untrusted files.
void tell(const std::exception& error) {
  // fmt::print() throws if stderr cannot be written, for instance on a full disk.
  std::fputs(fmt::format("howmany: {}\n", printable(reason_of(error))).c_str(), stderr);
}

}  // namespace

int main(int argc, char** argv) {
  prepare_process();
  try {
    const int code = run_command(argc, argv, version_text());
    // A full disk is detected only at the last write. It must not count as success.
    if (std::fflush(stdout) == 0) return code;
    fmt::print(stderr, "howmany: cannot write to stdout: {}\n", std::strerror(errno));
    return exit_code::kMeasurementFailed;
  } catch (const InputError& error) {
    tell(error);
    return exit_code::kUsage;
  } catch (const std::exception& error) {
    tell(error);
    return exit_code::kMeasurementFailed;
  }
}
