// SPDX-License-Identifier: Apache-2.0
// The program `howmany`. Errors become one line on stderr and an exit code.
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "core/base/process.h"
#include "core/base/schema/exit_codes.h"
#include "core/base/startup.h"
#include "core/base/text/print_stderr.h"
#include "core/base/text/table.h"
#include "reports/cli/root_command.h"
#include "reports/cli/version.h"
#include "reports/results/record.h"

namespace {

using namespace howmany;
using namespace howmany::reports;

int fail(const std::exception& error, int code) {
  if (interrupted()) return exit_code::kInterrupted;           // the cause of the error
  print_stderr("howmany: {}\n", printable(reason_of(error)));  // it may quote untrusted files
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  prepare_process();
  try {
    const int code = run_command(argc, argv, version_text());
    // A full disk is detected only at the last write. It must not count as success.
    if (std::fflush(stdout) == 0) return code;
    print_stderr("howmany: cannot write to stdout: {}\n", std::strerror(errno));
    return exit_code::kMeasurementFailed;
  } catch (const InputError& error) {
    return fail(error, exit_code::kUsage);
  } catch (const std::exception& error) {
    return fail(error, exit_code::kMeasurementFailed);
  }
}
